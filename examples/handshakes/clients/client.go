// An HTTP/1.1 client on Go's net/http: client ADDRESS NAME AUTHORITY.crt VERSION HOW REQUESTS...
//
// VERSION is 1.2 or 1.3. HOW is `full` (one connection), `resumed` (two, the second with a ticket), `certificate` (one,
// and the client shows keys/client.crt) or `together-N` (N goroutines ask every request each, beginning with different
// ones, and think 7 ms between; they share up to N connections). A request is written METHOD:TARGET:BODY_BYTES or
// METHOD:TARGET:BODY_BYTES:COOKIE_BYTES and is sent once the response to the one before has been read. Secrets go to the
// file SSLKEYLOGFILE names.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const think = 7 * time.Millisecond

func main() {
	address, name, authority, version, how := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	certificate, err := os.ReadFile(authority)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	secrets, err := os.OpenFile(os.Getenv("SSLKEYLOGFILE"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(err)
	number := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	config := &tls.Config{
		RootCAs: roots, ServerName: name, MinVersion: number, MaxVersion: number, KeyLogWriter: secrets,
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	connections := 1
	switch how {
	case "resumed":
		connections = 2
	case "certificate":
		pair, err := tls.LoadX509KeyPair("keys/client.crt", "keys/client.key")
		must(err)
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{
		TLSClientConfig: config,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	lines := os.Args[6:]
	if many, found := strings.CutPrefix(how, "together-"); found {
		workers, err := strconv.Atoi(many)
		must(err)
		transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = workers, workers
		askTogether(&http.Client{Transport: transport}, name, lines, workers)
		transport.CloseIdleConnections()
		return
	}
	for range connections {
		for _, line := range lines {
			ask(&http.Client{Transport: transport}, name, line)
		}
		transport.CloseIdleConnections()
	}
}

func askTogether(client *http.Client, name string, lines []string, workers int) {
	var group sync.WaitGroup
	for first := range workers {
		group.Go(func() {
			for place := range lines {
				if place > 0 {
					time.Sleep(think)
				}
				ask(client, name, lines[(first+place)%len(lines)])
			}
		})
	}
	group.Wait()
}

func ask(client *http.Client, name, line string) {
	parts := strings.Split(line, ":")
	size, err := strconv.Atoi(parts[2])
	must(err)
	var body io.Reader
	if size > 0 {
		body = strings.NewReader(strings.Repeat("x", size))
	}
	request, err := http.NewRequest(parts[0], "https://"+name+parts[1], body)
	must(err)
	if len(parts) > 3 {
		size, err := strconv.Atoi(parts[3])
		must(err)
		request.Header.Set("Cookie", "c="+strings.Repeat("x", size))
	}
	response, err := client.Do(request)
	must(err)
	_, err = io.Copy(io.Discard, response.Body)
	must(err)
	must(response.Body.Close())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
