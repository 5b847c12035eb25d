// A Go client with net/http's own pool: some requests one after the other, then rounds of so many at a time.
//
//	pooling -url URL -at-a-time 8 -rounds 6 -idle 2
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	url := flag.String("url", "", "what to ask for")
	first := flag.Int("first", 1, "requests one after the other, to begin with")
	atATime := flag.Int("at-a-time", 8, "requests at a time")
	rounds := flag.Int("rounds", 6, "how often")
	pause := flag.Duration("pause", 30*time.Millisecond, "between rounds")
	idle := flag.Int("idle", 0, "MaxIdleConnsPerHost; 0 is Go's default, 2")
	flag.Parse()

	transport := &http.Transport{
		MaxIdleConnsPerHost: *idle,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
	}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	ask := func() {
		response, err := client.Get(*url)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
	}
	for range *first {
		ask()
	}
	for range *rounds {
		var together sync.WaitGroup
		for number := range *atATime {
			together.Add(1)
			go func() {
				defer together.Done()
				time.Sleep(time.Duration(number) * 2 * time.Millisecond)
				ask()
			}()
		}
		together.Wait()
		time.Sleep(*pause)
	}
	transport.CloseIdleConnections()
	fmt.Fprintln(os.Stderr, "done")
}
