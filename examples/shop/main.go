// Command shop is a small web shop that sells some of its goods through the
// Seckill engine. It shows what a shop has to do, and no more: put a SKU on
// sale, sign its users in at the engine, take their money, and keep its own
// order table equal to the engine's by webhooks. README.md says how to run it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of every request and of the stop.
const (
	readWithin     = 10 * time.Second
	writeWithin    = 20 * time.Second // above three calls to the engine
	idleWithin     = time.Minute
	maxHeaderBytes = 16 << 10
	stopWithin     = 10 * time.Second
)

// Shop is the program.
type Shop struct {
	db             *sql.DB
	engine         *Engine
	webhookSecrets [][]byte // the newest first
	operatorToken  string
	now            func() time.Time
	log            *slog.Logger

	paid    chan struct{} // wakes the teller
	hashing chan struct{} // bounds password hashing
}

func newShop(db *sql.DB, engine *Engine, webhookSecrets [][]byte, operatorToken string, log *slog.Logger) *Shop {
	return &Shop{
		db: db, engine: engine, webhookSecrets: webhookSecrets, operatorToken: operatorToken, now: time.Now, log: log,
		paid: make(chan struct{}, 1), hashing: make(chan struct{}, maxHashing),
	}
}

// handler is all routes of the shop.
func (s *Shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.showCatalogue)
	mux.HandleFunc("GET /sales/{sku}", s.showSale)
	mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) { s.render(w, r, http.StatusOK, "sign-in", User{}, "") })
	mux.HandleFunc("POST /sign-in", s.enter(s.signIn))
	mux.HandleFunc("POST /sign-up", s.enter(s.signUp))
	mux.HandleFunc("POST /sign-out", s.signOut)
	mux.HandleFunc("GET /orders", s.forUser(s.showOrders))
	mux.HandleFunc("GET /orders/{no}", s.forUser(s.showOrder))
	mux.HandleFunc("POST /orders/{no}/pay", s.forUser(s.payOrder))
	mux.HandleFunc("POST /orders/{no}/cancel", s.forUser(s.cancelOrder))
	mux.Handle("GET /page/", http.FileServerFS(pageFiles))

	mux.HandleFunc("POST /webhooks/seckill", s.receiveWebhook)
	mux.HandleFunc("POST /flash-sales", s.forOperator(s.createSale))
	mux.HandleFunc("GET /orders.json", s.forOperator(s.serveOrders))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	// Forms of other sites must not act for our users.
	return http.NewCrossOriginProtection().Handler(mux)
}

// serve runs the shop until ctx ends, then finishes what it holds.
func (s *Shop) serve(ctx context.Context, listen string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("open shop: %w", err)
	}
	server := &http.Server{
		Handler: s.handler(), MaxHeaderBytes: maxHeaderBytes,
		ReadTimeout: readWithin, WriteTimeout: writeWithin, IdleTimeout: idleWithin,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	background.Go(func() { s.tell(ctx) })
	background.Go(func() { s.sweep(ctx) })
	background.Go(func() {
		<-ctx.Done()
		within, done := context.WithTimeout(context.Background(), stopWithin)
		defer done()
		if err := server.Shutdown(within); err != nil {
			s.log.Error("requests were cut off", "error", err)
		}
	})
	s.log.Info("shop is open", "address", "http://"+listener.Addr().String())
	err = server.Serve(listener)
	cancel()
	background.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// fromEnvironment reads the secrets. They are no flags, because every user of a
// machine can read another process's flags.
func fromEnvironment(engine *Engine) (webhookSecrets [][]byte, operatorToken string, err error) {
	read := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			err = errors.Join(err, fmt.Errorf("%s is not set", name))
		}
		return value
	}
	engine.AdminToken = read("SHOP_ENGINE_TOKEN")
	engine.JWTSecret = []byte(read("SHOP_JWT_SECRET"))
	engine.SandboxSecret = []byte(read("SHOP_SANDBOX_SECRET"))
	operatorToken = read("SHOP_OPERATOR_TOKEN")
	for _, text := range strings.Fields(read("SHOP_WEBHOOK_SECRETS")) {
		secret, wrong := parseWebhookSecret(text)
		webhookSecrets, err = append(webhookSecrets, secret), errors.Join(err, wrong)
	}
	return webhookSecrets, operatorToken, err
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "127.0.0.1:9090", "`address` of the shop")
	path := flag.String("db", "shop.db", "`file` with the shop's database")
	engine := &Engine{HTTP: &http.Client{Timeout: engineWithin}}
	flag.StringVar(&engine.PublicURL, "engine", "http://127.0.0.1:8080", "`URL` at which browsers and the shop reach the engine")
	flag.StringVar(&engine.AdminURL, "engine-admin", "http://127.0.0.1:8081", "`URL` of the engine's operator API")
	flag.Parse()
	webhookSecrets, operatorToken, err := fromEnvironment(engine)
	if err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	db, err := openDatabase(*path)
	if err != nil {
		return err
	}
	defer db.Close()
	return newShop(db, engine, webhookSecrets, operatorToken, slog.New(slog.NewTextHandler(os.Stderr, nil))).serve(ctx, *listen)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}
