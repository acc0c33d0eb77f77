package shopapi

import (
	"io"
	"log"
	"time"

	"github.com/valyala/fasthttp"
)

// Bounds of the public server.
const (
	MaxBodyBytes     = 16 << 10
	readBufferBytes  = 8 << 10 // a request's head must fit
	writeBufferBytes = 4 << 10 // larger answers are written past it
	readTimeout      = 10 * time.Second
	writeTimeout     = 10 * time.Second
	idleTimeout      = 75 * time.Second
	workerIdle       = 10 * time.Second
	maxConnections   = 1 << 20 // the listener has the bound that counts
)

// newHTTP configures fasthttp. It names every field, so that each default is
// chosen here. TestNewHTTP_NamesEveryField fails when a new version of the
// library brings a field that is not decided yet.
func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:      s.Handle,
		ErrorHandler: s.badRequest,
		Logger:       log.New(io.Discard, "", 0), // about broken clients; a line could quote a request

		// Framing. No library code may interpret a body: a parser that stops before
		// the declared length turns the rest into a second request. The library
		// parses multipart bodies by default, so that is off. Bodies are read whole
		// (16 KiB at most) before the handler runs; a stream could be left half read.
		HeaderReceived:                headReceived,
		DisablePreParseMultipartForm:  true,
		StreamRequestBody:             false,
		FormValueFunc:                 nil,   // no route calls FormValue
		DisableHeaderNamesNormalizing: false, // header names are found in any case
		GetOnly:                       false, // routes check their methods

		// Expect: 100-continue is answered by 100, then the body is read.
		// headReceived removes the header from requests whose body is not wanted.
		ContinueHandler: nil,
		ExpectHandler:   nil,

		// Size and time. Every wait has a deadline.
		MaxRequestBodySize: MaxBodyBytes,
		ReadBufferSize:     readBufferBytes,
		WriteBufferSize:    writeBufferBytes,
		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,

		// Connections. The listener counts them, in all and per address, and it
		// speaks TLS. TCP keep-alive is on by Go's own default; the library's
		// setting would only concern listeners that it opens itself.
		Concurrency:                        maxConnections,
		MaxConnsPerIP:                      0,
		SleepWhenConcurrencyLimitsExceeded: 0,
		TLSConfig:                          nil,
		ConnState:                          nil,
		TCPKeepalive:                       false,
		TCPKeepalivePeriod:                 0,
		DisableKeepalive:                   false, // proxies and browsers reuse connections
		MaxRequestsPerConn:                 0,     // the rate limits count requests
		MaxKeepaliveDuration:               0,     //nolint:staticcheck // deprecated, without effect
		MaxIdleWorkerDuration:              workerIdle,
		KeepHijackedConns:                  true, // the watch closes event streams
		CloseOnShutdown:                    true, // clients learn that they must reconnect

		// Buffers stay with their connection: taking them from a pool for each
		// request costs more CPU than the listener's bound on connections saves.
		ReduceMemoryUsage: false,

		// Answers. No Server header: it only tells an attacker the library. Date is
		// kept, because caches need it. The default type text/plain is harmless with
		// X-Content-Type-Options: nosniff.
		Name:                  "",
		NoDefaultServerHeader: true,
		NoDefaultDate:         false,
		NoDefaultContentType:  false,

		// Logs. Errors that clients cause fill no log, and no log quotes a request.
		LogAllErrors:          false,
		SecureErrorLogMessage: true,
	}
}
