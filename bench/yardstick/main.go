// Yardstick is the design that most flash-sale projects have: gin in front,
// go-redis behind, one Lua script per request that checks the buyer, deducts
// the stock and adds a stream entry of its own. It answers the same request
// with the same bytes as the engine, so that bench/redis can measure both side
// by side. It is a module of its own: the engine does not depend on it.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/golang-jwt/jwt/v5"
	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"
)

//go:embed reserve.lua
var reserveText string

var reserve = redis.NewScript(reserveText)

type order struct {
	Quantity int `json:"quantity"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to serve on")
	address := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	stock := flag.Int("stock", 10_000_000, "units of product 1")
	pool := flag.Int("pool", 0, "connections to Redis; 0 is the library's default")
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	client := redis.NewClient(&redis.Options{Addr: *address, PoolSize: *pool})
	secret := []byte(os.Getenv("SECKILL_AUTH_JWT_SECRET"))

	router := gin.New()
	router.GET("/readyz", func(c *gin.Context) { c.Status(http.StatusOK) })
	router.POST("/api/v1/products/:id/orders", func(c *gin.Context) { buy(c, client, secret) })
	if err := client.Set(context.Background(), "yardstick:{1}:stock", *stock, 0).Err(); err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: router, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// buyer verifies the bearer token with the usual library.
func buyer(c *gin.Context, secret []byte) (string, error) {
	text, found := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	if !found {
		return "", errors.New("no bearer token")
	}
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return secret, nil }, jwt.WithValidMethods([]string{"HS256"}))
	return claims.Subject, err
}

func buy(c *gin.Context, client *redis.Client, secret []byte) {
	who, err := buyer(c, secret)
	if err != nil {
		c.JSON(http.StatusUnauthorized, gin.H{"code": "unauthenticated"})
		return
	}
	var asked order
	if err := c.ShouldBindJSON(&asked); err != nil || asked.Quantity < 1 {
		c.JSON(http.StatusBadRequest, gin.H{"code": "bad_request"})
		return
	}
	id := c.Param("id")
	no := "SK" + ulid.Make().String()
	keys := []string{"yardstick:{" + id + "}:stock", "yardstick:{" + id + "}:buyers", "yardstick:{" + id + "}:orders"}
	verdict, err := reserve.Run(c.Request.Context(), client, keys, who, no, id, asked.Quantity).Int()
	switch {
	case err != nil:
		c.JSON(http.StatusServiceUnavailable, gin.H{"code": "busy"})
	case verdict == 1:
		c.JSON(http.StatusConflict, gin.H{"code": "sold_out"})
	case verdict == 2:
		c.JSON(http.StatusConflict, gin.H{"code": "already_purchased"})
	default:
		c.JSON(http.StatusAccepted, gin.H{"order_no": no, "status": "queued"})
	}
}
