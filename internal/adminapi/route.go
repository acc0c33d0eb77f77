package adminapi

import (
	"bytes"
	"net/http"
	"net/http/pprof"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill"
	"seckill/internal/api"
)

// base is the root of all paths that need the token.
const base = "/admin/v1"

// route is one operation of the API.
type route struct {
	method, path string
	timeout      time.Duration
	operation    operation
}

func (a *handler) routes() []route {
	const get, post, patch = http.MethodGet, http.MethodPost, http.MethodPatch
	short, long := requestTimeout, longTimeout
	return []route{
		{get, "/products", short, a.listProducts},
		{post, "/products", short, a.createProduct},
		{get, "/products/{id}", short, a.getProduct},
		{patch, "/products/{id}", short, a.patchProduct},
		{http.MethodDelete, "/products/{id}", long, a.deleteProduct},
		{post, "/products/{id}/preheat", long, a.onProduct("preheat", a.Sales.Preheat)},
		{post, "/products/{id}/recover", long, a.onProduct("recover", a.Sales.Recover)},
		{post, "/products/{id}/takeover", short, a.onProduct("take over", a.Sales.TakeOver)},
		{post, "/products/{id}/pause", short, a.setState(seckill.SalePaused)},
		{post, "/products/{id}/resume", short, a.setState(seckill.SaleOpen)},
		{post, "/products/{id}/end", short, a.setState(seckill.SaleEnded)},
		{post, "/products/{id}/stock", short, a.changeStock},
		{get, "/products/{id}/stats", short, a.getStats},
		{get, "/orders", short, a.searchOrders},
		{get, "/orders/{order_no}", short, a.getOrder},
		{post, "/orders/{order_no}/cancel", short, a.cancelOrder},
		{post, "/orders/{order_no}/refund", short, a.refundOrder},
		{get, "/dead-letters", short, a.listLetters},
		{post, "/dead-letters/{id}/retry", short, a.retryLetter},
		{post, "/dead-letters/{id}/discard", short, a.discardLetter},
		{get, "/reconciliations", short, a.listReconciliations},
		{post, "/reconciliations", long, a.reconcile},
		{get, "/payments", short, a.listPayments},
		{post, "/payments/{id}/retry", short, a.retryRefund},
		{get, "/events", short, a.listEvents},
		{get, "/audit", short, a.listAudit},
		{get, "/sinks", short, a.listSinks},
		{get, "/sinks/{name}/deliveries", short, a.listDeliveries},
		{post, "/sinks/{name}/deliveries/{id}/retry", short, a.onDelivery("retry", a.Sinks.Retry)},
		{post, "/sinks/{name}/deliveries/{id}/skip", short, a.onDelivery("skip", a.Sinks.Skip)},
		{post, "/sinks/{name}/retry", long, a.onSink("retry deliveries of", "retried", a.Sinks.RetryAll)},
		{post, "/sinks/{name}/skip", long, a.onSink("skip deliveries of", "skipped", a.Sinks.SkipAll)},
		{post, "/sinks/{name}/forget", long, a.onSink("forget", "deliveries", a.Sinks.Forget)},
		{post, "/sinks/{name}/replay", long, a.replaySink},
		{post, "/sinks/{name}/test", echoTimeout, a.testSink},
	}
}

// routed returns the router. It accepts only our hosts and canonical paths, requires
// the token for everything private, and answers unknown paths and methods with
// problem documents.
func (a *handler) routed() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{} // by path, for 405
	handle := func(method, path string, handler http.Handler) {
		mux.Handle(method+" "+path, handler)
		allowed[path] = append(allowed[path], method)
	}
	if a.HealthOnly {
		mux.HandleFunc(base+"/", a.refuseRole)
	} else {
		for _, r := range a.routes() {
			handle(r.method, base+r.path, a.served(r))
		}
		handle(http.MethodGet, base+"/stats/stream", http.HandlerFunc(a.streamStats))
	}
	handle(http.MethodGet, "/healthz", http.HandlerFunc(serveHealth))
	handle(http.MethodGet, readyPath, http.HandlerFunc(a.serveReady))
	handle(http.MethodGet, "/openapi.yaml", http.HandlerFunc(serveOpenAPI))
	if a.Metrics != nil {
		handle(http.MethodGet, "/metrics", whole(a.Metrics))
	}
	for path, methods := range allowed {
		mux.Handle(path, refuseMethod(methods))
	}
	if a.Pprof {
		handlePprof(mux)
	}
	mux.HandleFunc("/", refusePath)
	return a.atHome(canonical(a.authenticated(mux)))
}

const pprofBase = "/debug/pprof/"

func handlePprof(mux *http.ServeMux) {
	handle := func(name string, handler http.HandlerFunc) {
		mux.HandleFunc("GET "+pprofBase+name, func(w http.ResponseWriter, r *http.Request) {
			if rec, ok := w.(*recorder); ok {
				rec.readWithin = pprofTimeout
			}
			handler(w, r)
		})
	}
	handle("", pprof.Index)
	handle("cmdline", pprof.Cmdline)
	handle("profile", pprof.Profile)
	handle("symbol", pprof.Symbol)
	handle("trace", pprof.Trace)
}

// whole lets a handler write its answer to memory first. A client that does not read
// then keeps only the answer in memory. Otherwise promhttp would keep all metrics and
// a compressor while it writes.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		memory := &page{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(memory, r)
		w.Header().Set("Content-Length", strconv.Itoa(memory.body.Len()))
		w.WriteHeader(memory.status)
		_, _ = w.Write(memory.body.Bytes()) // the client may have left
	})
}

// page is an answer in memory. Its headers are those of the real answer.
type page struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (p *page) WriteHeader(status int)         { p.status = status }
func (p *page) Write(text []byte) (int, error) { return p.body.Write(text) }

// single are headers that decide who acts and what is done. They must appear once: of
// two, a proxy in front may have used the other.
var single = []string{"Authorization", "Idempotency-Key", "Content-Type", "X-Operator"}

const multipartPrefix = "multipart/"

// canonical refuses paths that the router would redirect, because a redirected POST
// loses its body. It also refuses repeated headers of single, and multipart bodies
// without reading them.
func canonical(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range single {
			if len(r.Header.Values(name)) > 1 {
				err := seckill.Errorf(seckill.CodeBadRequest, "%s must be given once", name)
				suspect(w, suspectAmbiguous, err)
				api.WriteProblem(w, err, language(r))
				return
			}
		}
		if kind := r.Header.Get("Content-Type"); len(kind) >= len(multipartPrefix) && strings.EqualFold(kind[:len(multipartPrefix)], multipartPrefix) {
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).EnableFullDuplex() // otherwise net/http reads the body before the answer
			err := seckill.Errorf(seckill.CodeBadRequest, "multipart bodies are not supported: send JSON")
			suspect(w, suspectAmbiguous, err)
			api.WriteProblemStatus(w, http.StatusUnsupportedMediaType, err, language(r))
			return
		}
		if r.URL.Path != path.Clean(r.URL.Path) && !strings.HasPrefix(r.URL.Path, pprofBase) {
			refusePath(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refusePath(w http.ResponseWriter, r *http.Request) {
	api.WriteProblem(w, seckill.Errorf(seckill.CodeNotFound, "no such path"), language(r))
}

// refuseRole answers operator requests at an instance without the admin role.
func (a *handler) refuseRole(w http.ResponseWriter, r *http.Request) {
	api.WriteProblem(w, seckill.Errorf(seckill.CodeNotFound,
		"this instance runs with --roles=%s and has no operator API: ask one with role admin", strings.Join(a.Roles, ",")), language(r))
}

func refuseMethod(methods []string) http.Handler {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead) // the router serves it with GET
	}
	slices.Sort(methods)
	allow := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		err := seckill.Errorf(seckill.CodeBadRequest, "method must be one of %s", allow)
		api.WriteProblemStatus(w, http.StatusMethodNotAllowed, err, language(r))
	})
}

func language(r *http.Request) seckill.Lang {
	return api.Language([]byte(strings.Join(r.Header.Values("Accept-Language"), ",")))
}
