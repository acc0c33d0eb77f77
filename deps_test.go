package seckill_test

// Kept until the packages that need them stand.
import (
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/redis/rueidis"
)
