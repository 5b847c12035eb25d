// A client that asks three times on each connection, and is slow where it is told: shopper NAME AUTHORITY.crt PAIRS OPTIONS...
//
// PAIRS are addresses, FROM-TO,FROM-TO: a connection each, one after the other. hello-MS sleeps between the TCP handshake and the ClientHello. verify-URL fetches URL while it verifies the server's
// certificate, as a client does that asks for a revocation list. sign-MS shows keys/client.crt, for which a signature takes
// so long, as with a smart card. small-N offers no post-quantum key share on the first N connections.
package main

import (
	"bufio"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	requests = 3
	pause    = 20 * time.Millisecond
)

type card struct {
	crypto.Signer
	takes time.Duration
}

func (c card) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	time.Sleep(c.takes)
	return c.Signer.Sign(random, digest, options)
}

func main() {
	name, authority, pairs := os.Args[1], os.Args[2], strings.Split(os.Args[3], ",")
	certificate, err := os.ReadFile(authority)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	config := &tls.Config{RootCAs: roots, ServerName: name}
	var hello time.Duration
	small := 0
	for _, option := range os.Args[4:] {
		kind, value, _ := strings.Cut(option, "-")
		switch kind {
		case "hello":
			hello = milliseconds(value)
		case "small":
			small = number(value)
		case "verify":
			config.VerifyConnection = func(tls.ConnectionState) error {
				transport := &http.Transport{DisableKeepAlives: true}
				response, err := (&http.Client{Transport: transport}).Get(value)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				_, err = io.Copy(io.Discard, response.Body)
				return err
			}
		case "sign":
			pair, err := tls.LoadX509KeyPair("keys/client.crt", "keys/client.key")
			must(err)
			pair.PrivateKey = card{pair.PrivateKey.(crypto.Signer), milliseconds(value)}
			config.Certificates = []tls.Certificate{pair}
		}
	}
	for place, pair := range pairs {
		config.CurvePreferences = nil
		if place < small {
			config.CurvePreferences = []tls.CurveID{tls.X25519}
		}
		ask(pair, name, config, hello)
	}
}

func ask(pair, name string, config *tls.Config, hello time.Duration) {
	from, to, _ := strings.Cut(pair, "-")
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	plain, err := dialer.Dial("tcp", to+":443")
	must(err)
	time.Sleep(hello)
	connection := tls.Client(plain, config)
	must(connection.Handshake())
	reader := bufio.NewReader(connection)
	for range requests {
		_, err = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", name)
		must(err)
		response, err := http.ReadResponse(reader, nil)
		must(err)
		if _, err = io.Copy(io.Discard, response.Body); err != nil {
			log.Print(err)
			return
		}
		time.Sleep(pause)
	}
	must(connection.Close())
}

func milliseconds(value string) time.Duration {
	return time.Duration(number(value)) * time.Millisecond
}

func number(value string) int {
	read, err := strconv.Atoi(value)
	must(err)
	return read
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
