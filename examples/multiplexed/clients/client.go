// An HTTP/2 client on Go's net/http: client NAME AUTHORITY.crt PING_MS STEP... [and STEP...]...
//
// Each plan of steps is followed by a goroutine of its own; all share one connection. The steps are explained in
// __init__.py. After PING_MS milliseconds in which nothing arrived, the transport sends a PING; 0 for never. Secrets go
// to the file SSLKEYLOGFILE names.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const parts = 4

func main() {
	name, authority, pingAfter := os.Args[1], os.Args[2], milliseconds(os.Args[3])
	certificate, err := os.ReadFile(authority)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	secrets, err := os.OpenFile(os.Getenv("SSLKEYLOGFILE"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(err)
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter},
		TLSClientConfig: &tls.Config{
			RootCAs: roots, KeyLogWriter: secrets, ClientSessionCache: tls.NewLRUClientSessionCache(0),
		},
	}
	plans := [][]string{{}}
	for _, word := range os.Args[4:] {
		if word == "and" {
			plans = append(plans, nil)
		} else {
			plans[len(plans)-1] = append(plans[len(plans)-1], word)
		}
	}
	var group sync.WaitGroup
	for _, plan := range plans {
		group.Go(func() { follow(transport, name, plan) })
	}
	group.Wait()
	transport.CloseIdleConnections()
}

func follow(transport *http.Transport, name string, plan []string) {
	for _, step := range plan {
		if pause, found := strings.CutPrefix(step, "pause-"); found {
			time.Sleep(milliseconds(pause))
		} else if step == "again" {
			transport.CloseIdleConnections()
		} else {
			var group sync.WaitGroup
			for _, line := range strings.Split(step, "+") {
				group.Go(func() { ask(&http.Client{Transport: transport}, name, strings.Split(line, ":")) })
			}
			group.Wait()
		}
	}
}

func ask(client *http.Client, name string, words []string) {
	size, err := strconv.Atoi(words[2])
	must(err)
	var body io.Reader
	if len(words) > 3 {
		body = inParts(size, milliseconds(words[3]))
	} else if size > 0 {
		body = strings.NewReader(strings.Repeat("x", size))
	}
	request, err := http.NewRequest(words[0], "https://"+name+words[1], body)
	must(err)
	request.ContentLength = int64(size)
	response, err := client.Do(request)
	must(err)
	_, err = io.Copy(io.Discard, response.Body)
	must(err)
	must(response.Body.Close())
}

func inParts(size int, pause time.Duration) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		for range parts {
			_, err := io.WriteString(writer, strings.Repeat("x", size/parts))
			must(err)
			time.Sleep(pause)
		}
		must(writer.Close())
	}()
	return reader
}

func milliseconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	must(err)
	return time.Duration(number) * time.Millisecond
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
