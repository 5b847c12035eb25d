// Both ends of the hops' laboratory, which write down what no capture shows: which request is which.
//
//	traffic client -to HOST:PORT ... -log FILE      asks
//	traffic server -at HOST:PORT ... -log FILE      answers, after asking further servers where there are -next
//
// A request's cookie is id.size.wait: its number, the class of its response's size, and the server's time in tenths of a
// millisecond; all of a fixed width, so that requests differ in nothing else. A line of a log is one request on one
// connection, as that end knows it: client's address and port, server's, number on the connection from 0, id, time.
// The client writes what it sends, the server what it is sent.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	name     = "shop.example"
	tenth    = time.Millisecond / 10
	patience = 20 * time.Second
)

func main() {
	if os.Args[1] == "client" {
		client(os.Args[2:])
	} else {
		server(os.Args[2:])
	}
}

// What an end knows.

type diary struct {
	lock sync.Mutex
	file *bufio.Writer
}

func openDiary(path string) *diary {
	file, err := os.Create(path)
	must(err)
	return &diary{file: bufio.NewWriter(file)}
}

func (d *diary) note(client, server net.Addr, exchange int, id string, at time.Time) {
	d.lock.Lock()
	defer d.lock.Unlock()
	clientIP, clientPort, _ := net.SplitHostPort(client.String())
	serverIP, serverPort, _ := net.SplitHostPort(server.String())
	fmt.Fprintf(d.file, "%s,%s,%s,%s,%d,%s,%d\n", clientIP, clientPort, serverIP, serverPort, exchange, id, at.UnixNano())
}

func (d *diary) close() {
	d.lock.Lock()
	defer d.lock.Unlock()
	must(d.file.Flush())
}

// The server.

type connection struct {
	client, server net.Addr
	exchanges      atomic.Int32
}

type connectionKey struct{}

type shop struct {
	diary     *diary
	next      []string
	calls     string
	sizes     []int
	dropEvery uint64
	failEvery uint64
	transport *http.Transport
}

func server(words []string) {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	at := flags.String("at", "", "address and port")
	pem := flags.String("pem", "", "certificate and key: TLS")
	path := flags.String("log", "", "the log")
	next := flags.String("next", "", "servers to ask, comma between")
	calls := flags.String("calls", "", "some: 0 to 2 of -next one after the other; all: 2 or more of -next at once")
	sizes := flags.String("sizes", "300,2000,15000", "bytes of a response, by the class that its request wants")
	dropEvery := flags.Uint64("drop", 0, "close the connection instead of answering one request in so many")
	failEvery := flags.Uint64("fail", 0, "answer 503 to one request in so many")
	must(flags.Parse(words))
	s := &shop{
		diary: openDiary(*path), calls: *calls, dropEvery: *dropEvery, failEvery: *failEvery,
		transport: &http.Transport{MaxIdleConnsPerHost: 32},
	}
	for word := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(word)
		must(err)
		s.sizes = append(s.sizes, size)
	}
	if *next != "" {
		s.next = strings.Split(*next, ",")
	}
	listener, err := net.Listen("tcp", *at)
	must(err)
	server := http.Server{
		Handler:   s,
		ErrorLog:  log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{NextProtos: []string{"http/1.1"}},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, &connection{client: c.RemoteAddr(), server: c.LocalAddr()})
		},
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		s.diary.close()
		os.Exit(0)
	}()
	if *pem != "" {
		must(server.ServeTLS(listener, *pem, *pem))
	}
	must(server.Serve(listener))
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	c := r.Context().Value(connectionKey{}).(*connection)
	exchange := int(c.exchanges.Add(1)) - 1
	cookie, err := r.Cookie("id")
	if err != nil {
		// A health check: nobody's request.
		s.diary.note(c.client, c.server, exchange, "", at)
		return
	}
	var id, size, wait uint64
	_, err = fmt.Sscanf(cookie.Value, "%d.%d.%d", &id, &size, &wait)
	must(err)
	s.diary.note(c.client, c.server, exchange, fmt.Sprintf("%08d", id), at)
	_, err = io.Copy(io.Discard, r.Body)
	must(err)
	dice := rand.New(rand.NewPCG(id, uint64(c.server.(*net.TCPAddr).Port)))
	if s.dropEvery > 0 && dice.Uint64N(s.dropEvery) == 0 {
		// In the midst of its work: the proxy sees a connection end instead of a response.
		time.Sleep(time.Duration(wait) * tenth / 4)
		panic(http.ErrAbortHandler)
	}
	if s.failEvery > 0 && dice.Uint64N(s.failEvery) == 0 {
		http.Error(w, "come again", http.StatusServiceUnavailable)
		return
	}
	time.Sleep(time.Duration(wait) * tenth)
	s.askFurther(dice, id)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", fmt.Sprint(s.sizes[size]))
	_, _ = w.Write(make([]byte, s.sizes[size]))
}

// Ask the servers behind this one, with a cookie of the same number.
func (s *shop) askFurther(dice *rand.Rand, id uint64) {
	if len(s.next) == 0 {
		return
	}
	var asked []string
	if s.calls == "all" {
		asked = s.next[:2+dice.IntN(len(s.next)-1)]
	} else {
		for range dice.IntN(3) {
			asked = append(asked, s.next[dice.IntN(len(s.next))])
		}
	}
	var group sync.WaitGroup
	for _, server := range asked {
		cookie := makeCookie(dice, id, 1)
		if s.calls == "all" {
			group.Go(func() { s.ask(server, cookie) })
		} else {
			s.ask(server, cookie)
		}
	}
	group.Wait()
}

func (s *shop) ask(server, cookie string) {
	request, err := http.NewRequest("GET", "http://"+server+"/stock", nil)
	must(err)
	request.Header.Set("Cookie", cookie)
	response, err := s.transport.RoundTrip(request)
	must(err)
	_, err = io.Copy(io.Discard, response.Body)
	must(err)
	must(response.Body.Close())
}

// A cookie with a size and a time by chance: one request in seven is answered at once, the others within 1 to 30 ms.
func makeCookie(dice *rand.Rand, id uint64, slower float64) string {
	size := []int{0, 0, 0, 0, 0, 1, 1, 1, 2, 2}[dice.IntN(10)]
	wait := 0.0
	if dice.IntN(7) > 0 {
		wait = min(1+7*dice.ExpFloat64(), 30) * slower
	}
	return fmt.Sprintf("id=%08d.%d.%05d", id, size, int(wait*10))
}

// The client.

type customer struct {
	diary          *diary
	from           net.Addr
	to, direct     string
	tls            *tls.Config
	seed           uint64
	requests       int64
	perConnection  int
	pause          float64
	slower         float64
	bodies         []int
	distinct, mark bool
	asked          atomic.Int64
}

func client(words []string) {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	c := &customer{}
	flags.StringVar(&c.to, "to", "", "address and port")
	from := flags.String("from", "", "own address")
	flags.StringVar(&c.direct, "direct", "", "address and port of a server to ask directly, one time in four")
	flags.Uint64Var(&c.seed, "seed", 1, "of the dice")
	flags.Int64Var(&c.requests, "requests", 100, "how many in all")
	flags.IntVar(&c.perConnection, "each", 20, "requests on one connection, about")
	flags.Float64Var(&c.pause, "pause", 1, "milliseconds between two requests, about")
	flags.Float64Var(&c.slower, "slower", 1, "factor of the servers' times")
	flags.BoolVar(&c.distinct, "distinct", false, "every request has a target of its own")
	flags.BoolVar(&c.mark, "mark", false, "every request has a traceparent and an X-Request-ID of its own")
	secure := flags.Bool("tls", false, "TLS")
	http2 := flags.Bool("http2", false, "HTTP/2, 16 streams to a connection")
	posts := flags.Bool("posts", false, "requests have bodies")
	secrets := flags.String("secrets", "", "file for the TLS secrets")
	path := flags.String("log", "", "the log")
	concurrency := flags.Int("concurrency", 1, "requests under way")
	must(flags.Parse(words))
	if *from != "" {
		c.from = &net.TCPAddr{IP: net.ParseIP(*from)}
	}
	c.bodies = []int{0}
	if *posts {
		c.bodies = []int{200, 200, 1200, 6000}
	}
	if *secure {
		c.tls = &tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: []string{"http/1.1"}}
		if *http2 {
			c.tls.NextProtos = []string{"h2"}
		}
		if *secrets != "" {
			file, err := os.Create(*secrets)
			must(err)
			c.tls.KeyLogWriter = file
		}
	}
	c.diary = openDiary(*path)
	var group sync.WaitGroup
	var shared *multiplexed
	for number := range *concurrency {
		dice := rand.New(rand.NewPCG(c.seed, uint64(number)))
		if *http2 {
			if number%16 == 0 {
				shared = c.multiplex()
			}
			own := shared
			group.Go(func() { c.walk(dice, func(line request) bool { return own.ask(line, c.diary) }) })
		} else {
			group.Go(func() { c.walkAlone(dice) })
		}
	}
	group.Wait()
	c.diary.close()
}

type request struct {
	id, target, cookie, trace string
	body                      int
}

// Ask until all is asked, with pauses.
func (c *customer) walk(dice *rand.Rand, ask func(request) bool) {
	for {
		number := c.asked.Add(1)
		if number > c.requests {
			return
		}
		line := request{id: fmt.Sprintf("%08d", number), target: "/stock", cookie: makeCookie(dice, uint64(number), c.slower)}
		line.body = c.bodies[dice.IntN(len(c.bodies))]
		if c.distinct {
			line.target = fmt.Sprintf("/stock/%06d", (uint64(number)*7919+c.seed)%1000000)
		}
		if c.mark {
			line.trace = fmt.Sprintf("%016x%016x", dice.Uint64(), dice.Uint64())
		}
		ask(line)
		time.Sleep(time.Duration(dice.ExpFloat64() * c.pause * float64(time.Millisecond)))
	}
}

// A connection of HTTP/1.1.
type line struct {
	net.Conn
	reader    *bufio.Reader
	exchanges int
	left      int
}

func (c *customer) dial(to string) net.Conn {
	plain, err := (&net.Dialer{LocalAddr: c.from}).Dial("tcp", to)
	must(err)
	must(plain.SetDeadline(time.Now().Add(patience)))
	if c.tls == nil {
		return plain
	}
	secure := tls.Client(plain, c.tls)
	must(secure.Handshake())
	return secure
}

// Walk with connections of one's own: to the proxy, and to the server that is asked directly.
func (c *customer) walkAlone(dice *rand.Rand) {
	lines := map[string]*line{}
	c.walk(dice, func(asked request) bool {
		to := c.to
		if c.direct != "" && dice.IntN(4) == 0 {
			to = c.direct
		}
		if lines[to] == nil {
			opened := c.dial(to)
			lines[to] = &line{Conn: opened, reader: bufio.NewReader(opened), left: 1 + dice.IntN(2*c.perConnection)}
		}
		l := lines[to]
		goesOn := l.ask(asked, c.diary)
		if l.left--; !goesOn || l.left == 0 {
			_ = l.Close()
			delete(lines, to)
		}
		return true
	})
	for _, l := range lines {
		_ = l.Close()
	}
}

func (l *line) ask(asked request, diary *diary) bool {
	must(l.SetDeadline(time.Now().Add(patience)))
	method, rest := "GET", ""
	if asked.body > 0 {
		method, rest = "POST", fmt.Sprintf("Content-Length: %d\r\n", asked.body)
	}
	if asked.trace != "" {
		rest += fmt.Sprintf("traceparent: 00-%s-%s-01\r\nX-Request-ID: %s\r\n", asked.trace, asked.trace[:16], asked.trace[16:])
	}
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: shopper\r\nAccept: */*\r\nCookie: %s\r\n%s\r\n%s",
		method, asked.target, name, asked.cookie, rest, strings.Repeat("x", asked.body))
	diary.note(l.LocalAddr(), l.RemoteAddr(), l.exchanges, asked.id, time.Now())
	l.exchanges++
	if _, err := io.WriteString(l, text); err != nil {
		return false
	}
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && !response.Close
}

// A connection of HTTP/2, as little of RFC 9113 as asking takes: what a response says is not read, only its end.
type multiplexed struct {
	conn      net.Conn
	lock      sync.Mutex
	exchanges int
	waiting   map[uint32]chan bool
}

const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoaway, frameWindow = 0, 1, 3, 4, 6, 7, 8
	flagEnd, flagAck, flagEndHeaders                                                        = 1, 1, 4
	largeWindow                                                                             = 1 << 30
)

func (c *customer) multiplex() *multiplexed {
	m := &multiplexed{conn: c.dial(c.to), waiting: map[uint32]chan bool{}}
	must(m.conn.SetDeadline(time.Now().Add(10 * patience)))
	windowSetting := []byte{0, 2, 0, 0, 0, 0, 0, 4, 0x40, 0, 0, 0} // ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 2^30
	hello := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, windowSetting)...)
	hello = append(hello, frame(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, largeWindow))...)
	_, err := m.conn.Write(hello)
	must(err)
	go m.listen()
	return m
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = append(head, flags)
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

func (m *multiplexed) listen() {
	reader := bufio.NewReader(m.conn)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(reader, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(reader, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		m.lock.Lock()
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			_, _ = m.conn.Write(frame(frameSettings, flagAck, 0, nil))
		case kind == framePing && flags&flagAck == 0:
			_, _ = m.conn.Write(frame(framePing, flagAck, 0, payload))
		case kind == frameGoaway:
			log.Fatal("the proxy goes away")
		case (kind == frameData || kind == frameHeaders) && flags&flagEnd != 0, kind == frameReset:
			if done := m.waiting[stream]; done != nil {
				delete(m.waiting, stream)
				close(done)
			}
		}
		m.lock.Unlock()
	}
}

func (m *multiplexed) ask(asked request, diary *diary) bool {
	fields := []byte{}
	for _, field := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", name}, {":path", asked.target},
		{"user-agent", "shopper"}, {"accept", "*/*"}, {"cookie", asked.cookie},
	} {
		// RFC 7541 section 6.2.2: a literal without indexing, name and value as they are.
		fields = append(fields, 0, byte(len(field[0])))
		fields = append(append(fields, field[0]...), byte(len(field[1])))
		fields = append(fields, field[1]...)
	}
	done := make(chan bool)
	m.lock.Lock()
	stream := uint32(2*m.exchanges + 1)
	m.waiting[stream] = done
	diary.note(m.conn.LocalAddr(), m.conn.RemoteAddr(), m.exchanges, asked.id, time.Now())
	m.exchanges++
	_, err := m.conn.Write(frame(frameHeaders, flagEnd|flagEndHeaders, stream, fields))
	m.lock.Unlock()
	must(err)
	<-done
	return true
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
