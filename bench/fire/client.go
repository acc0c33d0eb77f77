package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// edgeTriggered is EPOLLET, which package syscall has as a negative number.
const edgeTriggered = 1 << 31

// answerWithin bounds the wait for one answer.
const answerWithin = 10 * time.Second

// crowd is many connections of which each sends one request at a time, served by
// one thread and the kernel's poller: the generator shares the cores with the
// server, and what it costs is lost to both sides of a comparison, and more to
// the faster. It therefore asks the poller for changes only, and makes system
// calls of which Go's scheduler hears nothing: they never wait.
type crowd struct {
	target *net.TCPAddr
	head   []byte // of every request, up to the buyer's part
	poll   int
	conns  []*client // by descriptor
	open   int
}

// client is one connection.
type client struct {
	fd    int
	begun time.Time // from which its latency counts
	buf   []byte    // what came of the answer
}

func newCrowd(target *url.URL) (*crowd, error) {
	addr, err := net.ResolveTCPAddr("tcp4", target.Host)
	if err != nil {
		return nil, err
	}
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	head := "POST " + target.RequestURI() + " HTTP/1.1\r\nHost: " + target.Host +
		"\r\nContent-Type: application/json\r\nAccept-Language: zh-CN,zh;q=0.9\r\nAuthorization: "
	return &crowd{target: addr, head: []byte(head), poll: poll}, nil
}

// connect adds a connection.
func (c *crowd) connect() (*client, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	to := &syscall.SockaddrInet4{Port: c.target.Port}
	copy(to.Addr[:], c.target.IP.To4())
	if err := errors.Join(syscall.Connect(fd, to), syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.EpollCtl(c.poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN | edgeTriggered, Fd: int32(fd)})); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	for len(c.conns) <= fd {
		c.conns = append(c.conns, nil)
	}
	conn := &client{fd: fd}
	c.conns[fd], c.open = conn, c.open+1
	return conn, nil
}

func (c *crowd) drop(conn *client) {
	c.conns[conn.fd], c.open = nil, c.open-1
	syscall.Close(conn.fd)
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		if conn != nil {
			syscall.Close(conn.fd)
		}
	}
	syscall.Close(c.poll)
}

// send asks for one unit.
func (c *crowd) send(conn *client, by *buyer, begun time.Time) error {
	conn.begun = begun
	b := append(conn.buf[:0], c.head...)
	b = append(b, by.authorization...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(by.body)), 10)
	b = append(b, headEnd...)
	b = append(b, by.body...)
	n, err := call(syscall.SYS_WRITE, conn.fd, b)
	if conn.buf = b[:0]; err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// receive reads what came. The answer's status is 0 if that is not yet whole.
func (conn *client) receive() (answer, error) {
	have := len(conn.buf)
	room := conn.buf[have:cap(conn.buf)]
	if len(room) == 0 {
		return answer{}, errors.New("an answer is too long")
	}
	n, err := call(syscall.SYS_READ, conn.fd, room)
	if err != nil {
		return answer{}, err
	}
	if n == 0 {
		return answer{}, io.EOF
	}
	conn.buf = conn.buf[:have+n]
	return parse(conn.buf)
}

// call reads or writes. The poller has said that there is something to read, and
// a request fits into an empty buffer of the kernel's.
func call(number uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(number, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}

// answer is what the server said.
type answer struct {
	status int
	code   []byte // of a refusal; the connection's until it sends again
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("Content-Length: ")
	codeField     = []byte(`"code":"`)
	quote         = []byte(`"`)
)

// parse reads an answer whose length is told.
func parse(b []byte) (answer, error) {
	head, rest, whole := bytes.Cut(b, headEnd)
	if !whole {
		return answer{}, nil
	}
	at := bytes.Index(head, contentLength)
	if at < 0 || len(head) < len("HTTP/1.1 200") {
		return answer{}, errors.New("an answer without a length")
	}
	length := 0
	for _, digit := range head[at+len(contentLength):] {
		if digit < '0' || digit > '9' {
			break
		}
		length = 10*length + int(digit-'0')
	}
	if len(rest) < length {
		return answer{}, nil
	}
	status, err := strconv.Atoi(string(head[9:12]))
	return answer{status, codeOf(rest)}, err
}

// codeOf is the code of a problem document, or nothing.
func codeOf(body []byte) []byte {
	_, after, _ := bytes.Cut(body, codeField)
	code, _, _ := bytes.Cut(after, quote)
	return code
}
