package seckill_test

// Kept until the packages that need them stand.
import (
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/redis/rueidis"
)
