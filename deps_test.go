package seckill_test

// Kept until the packages that need them stand.
import (
	_ "github.com/redis/rueidis"
)
