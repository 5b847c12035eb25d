// Counts what TLS 1.3 connections of Go cost, in nanoseconds of CPU: with X25519, and with X25519MLKEM768, which Go has
// since 1.24 and the OpenSSL of this lab has not.
//
//	cost-go process GROUP KEYS HOW BYTES CONNECTIONS
//	cost-go server  GROUP KEYS HOW BYTES CONNECTIONS ADDRESS:PORT
//	cost-go client  GROUP KEYS HOW BYTES CONNECTIONS ADDRESS:PORT
//
// HOW is full or psk. Out: a line for each connection with the CPU of this process: in "process" that is both ends, which
// talk through memory; alone it is one end with its system calls.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var groups = map[string]tls.CurveID{"X25519": tls.X25519, "X25519MLKEM768": tls.X25519MLKEM768}

// Gives every connection the same name, so that the next one finds the session of the one before.
const name = "shop.example"

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost-go:", err)
		os.Exit(1)
	}
}

func cpuNow() int64 {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

// One direction of a connection through memory. It holds what was written until it is read: net.Pipe would not, and a
// server that sends its ticket and a client that sends its request would wait for each other.
type stream struct {
	lock  sync.Mutex
	more  *sync.Cond
	bytes bytes.Buffer
	ended bool
}

func newStream() *stream {
	made := &stream{}
	made.more = sync.NewCond(&made.lock)
	return made
}

type memory struct {
	net.Conn // nil: TLS needs no more than what is below
	in, out  *stream
}

func (end memory) Read(into []byte) (int, error) {
	end.in.lock.Lock()
	defer end.in.lock.Unlock()
	for end.in.bytes.Len() == 0 && !end.in.ended {
		end.in.more.Wait()
	}
	return end.in.bytes.Read(into)
}

func (end memory) Write(data []byte) (int, error) {
	end.out.lock.Lock()
	defer end.out.lock.Unlock()
	end.out.more.Signal()
	return end.out.bytes.Write(data)
}

func (end memory) Close() error {
	end.out.lock.Lock()
	defer end.out.lock.Unlock()
	end.out.ended = true
	end.out.more.Signal()
	return nil
}

func (memory) SetWriteDeadline(time.Time) error { return nil }

// Reads a request of so many bytes and answers it with as many.
func serve(wire net.Conn, config *tls.Config, data []byte) error {
	conn := tls.Server(wire, config)
	if _, err := io.ReadFull(conn, make([]byte, len(data))); err != nil {
		return err
	}
	if _, err := conn.Write(data); err != nil {
		return err
	}
	io.Copy(io.Discard, conn) // until the client closes
	return wire.Close()
}

func ask(wire net.Conn, config *tls.Config, data []byte, resumes bool) error {
	conn := tls.Client(wire, config)
	if _, err := conn.Write(data); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, len(data))); err != nil {
		return err
	}
	if conn.ConnectionState().DidResume != resumes {
		return fmt.Errorf("not resumed as asked")
	}
	return conn.Close()
}

func main() {
	words := os.Args[1:]
	role, group, keys, how := words[0], words[1], words[2], words[3]
	size, err := strconv.Atoi(words[4])
	must(err)
	connections, err := strconv.Atoi(words[5])
	must(err)
	data := make([]byte, size)
	pair, err := tls.LoadX509KeyPair(keys+"/server.crt", keys+"/server.key")
	must(err)
	curves := []tls.CurveID{groups[group]}
	serverConfig := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, CurvePreferences: curves}
	// As in the study, the client does not check the certificate.
	clientConfig := &tls.Config{
		ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: curves,
	}
	if how == "psk" {
		clientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	runtime.GOMAXPROCS(1)
	var listener net.Listener
	if role == "server" {
		listener, err = net.Listen("tcp", words[6])
		must(err)
	}
	for number := range connections {
		resumes := how == "psk" && number > 0
		before := cpuNow()
		switch role {
		case "process":
			up, down := newStream(), newStream()
			here, there := memory{in: down, out: up}, memory{in: up, out: down}
			done := make(chan error)
			go func() { done <- serve(there, serverConfig, data) }()
			must(ask(here, clientConfig, data, resumes))
			must(<-done)
		case "server":
			wire, err := listener.Accept()
			must(err)
			must(serve(wire, serverConfig, data))
		case "client":
			wire, err := net.Dial("tcp", words[6])
			must(err)
			must(ask(wire, clientConfig, data, resumes))
		}
		fmt.Println(cpuNow() - before)
	}
}
