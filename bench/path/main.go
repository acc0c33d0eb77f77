// Command path buys from an instance in its own process and writes, for each of
// some purchases, which code ran meanwhile. bench/path/run builds it with
// coverage and prints the functions.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"

	"seckill/internal/app"
	"seckill/internal/config"
	"seckill/test/login"
)

const (
	warm     = 20 // purchases before the first one that counts
	rounds   = 20
	within   = 30 * time.Second
	manyASec = 1_000_000
)

var secret = []byte("path-jwt-secret-0123456789abcdef")

func main() {
	redis := flag.String("redis", "127.0.0.1:6379", "address of an empty Redis")
	into := flag.String("into", "", "folder that gets one folder of coverage per purchase")
	flag.Parse()
	if err := run(*redis, *into); err != nil {
		log.Fatal(err)
	}
}

func run(redis, into string) error {
	data, err := os.MkdirTemp("", "path")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	instance, err := app.New(settings(data, redis), app.Options{Roles: []string{app.RoleShop, app.RoleAdmin}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- instance.Run(ctx) }()
	err = buy(ctx, instance, into)
	stop()
	return errors.Join(err, <-ended)
}

// settings have all gates on.
func settings(data, redis string) *config.Config {
	c := config.Default()
	c.DataDir = data
	c.Shop.Listen, c.Admin.Listen, c.Admin.Token = "127.0.0.1:0", "127.0.0.1:0", config.NewSecret("path-admin-token-0123456789abcdef")
	c.Auth.JWTSecret, c.Token.Secret = config.NewSecret(string(secret)), config.NewSecret("path-token-secret-0123456789abcdef")
	c.Ledger.Kind, c.Redis.Addrs = "redis", []string{redis}
	c.Payment.SandboxSecret = config.NewSecret("path-sandbox-secret-0123456789abcdef")
	c.Token.Required, c.Challenge.Kind = true, "none"
	c.Limit.IPPerSecond, c.Limit.BuyerPerSecond, c.Limit.ProductPerSecond = manyASec, manyASec, manyASec
	c.Limit.OtherIPPerSecond, c.Limit.OtherBuyerPerSecond = manyASec, manyASec
	return c
}

func buy(ctx context.Context, instance *app.App, into string) error {
	admin := caller{instance.AdminURL() + "/admin/v1", "Bearer path-admin-token-0123456789abcdef"}
	if err := admin.post(ctx, "/products", `{"id":1,"name":"phone","price_cents":699900,"stock":1000,"starts_at":"2020-01-01T00:00:00Z","ends_at":"2999-01-01T00:00:00Z"}`, nil); err != nil {
		return err
	}
	if err := admin.post(ctx, "/products/1/preheat", "{}", nil); err != nil {
		return err
	}
	for i := range warm + rounds {
		bearer, err := login.Token(secret, "buyer-"+strconv.Itoa(i), time.Now().Add(time.Hour))
		if err != nil {
			return err
		}
		shop := caller{instance.ShopURL() + "/api/v1/products/1", "Bearer " + bearer}
		var got struct {
			ID    string `json:"challenge_id"`
			Token string
		}
		if err := shop.post(ctx, "/challenge", "{}", &got); err != nil {
			return err
		}
		if err := shop.post(ctx, "/token", fmt.Sprintf(`{"challenge_id":%q}`, got.ID), &got); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // what these have set off comes to rest
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := shop.post(ctx, "/orders", fmt.Sprintf(`{"quantity":1,"token":%q}`, got.Token), nil); err != nil {
			return err
		}
		if i < warm {
			continue
		}
		folder := filepath.Join(into, strconv.Itoa(i-warm))
		if err := os.Mkdir(folder, 0o750); err != nil {
			return err
		}
		if err := errors.Join(coverage.WriteCountersDir(folder), coverage.WriteMetaDir(folder)); err != nil {
			return err
		}
	}
	return nil
}

type caller struct{ base, authorization string }

func (c caller) post(ctx context.Context, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", c.authorization)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		return errors.Join(err, fmt.Errorf("%s answers %s: %s", path, res.Status, text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
