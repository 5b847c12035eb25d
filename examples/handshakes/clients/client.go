// An HTTP/1.1 client on Go's net/http: client ADDRESS NAME AUTHORITY.crt VERSION HOW REQUESTS...
//
// VERSION is 1.2 or 1.3. HOW is `full` (one connection), `resumed` (two, the second with a ticket) or `certificate` (one,
// and the client shows keys/client.crt). A request is written METHOD:TARGET:BODY_BYTES and is sent once the response to
// the one before has been read. Secrets go to the file SSLKEYLOGFILE names.
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
)

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
	for range connections {
		for _, line := range os.Args[6:] {
			ask(&http.Client{Transport: transport}, name, line)
		}
		transport.CloseIdleConnections()
	}
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
