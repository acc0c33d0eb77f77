package main

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/url"
	"strconv"
	"time"
)

// answerWithin bounds the wait for one answer.
const answerWithin = 10 * time.Second

// client is one connection that sends one request at a time. It does as little
// as HTTP/1.1 allows, because it shares the cores with the server: what the
// generator costs is lost to both sides of a comparison, and more to the faster.
type client struct {
	target *url.URL
	conn   net.Conn
	reader *bufio.Reader
	buf    []byte
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// buy asks for one unit and returns the status of the answer.
func (c *client) buy(token string) (int, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.target.Host, answerWithin)
		if err != nil {
			return 0, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	const body = `{"quantity":1}`
	b := append(c.buf[:0], "POST "...)
	b = append(b, c.target.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.target.Host...)
	b = append(b, "\r\nContent-Type: application/json\r\nAccept-Language: zh-CN,zh;q=0.9\r\nAuthorization: Bearer "...)
	b = append(b, token...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	c.buf = append(b, body...)
	if err := c.conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.buf); err != nil {
		return 0, err
	}
	return c.answer()
}

var contentLength = []byte("content-length:")

// answer reads one answer whose length is told.
func (c *client) answer() (status int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, errors.New("no status line")
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, err
	}
	length := -1
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if n := len(contentLength); len(line) > n && bytes.EqualFold(line[:n], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[n:]))); err != nil {
				return 0, err
			}
		}
	}
	if length < 0 {
		return 0, errors.New("an answer without a length")
	}
	_, err = c.reader.Discard(length)
	return status, err
}
