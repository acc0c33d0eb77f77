package robot

import (
	"fmt"
	"testing"

	"seckill/test/engine"
)

// accounts is the number of the robot's accounts at each of its two addresses.
const accounts = 10_000

// tenThousandAccounts sends from one IPv4 address, and then from one IPv6 /64
// with an address for each account. Together the accounts get the rate of one
// address. Buyers at other addresses are not affected.
func tenThousandAccounts(t *testing.T) {
	e := engine.Start(t, engine.Options{Settings: map[string]string{"limit.ip_per_second": fmt.Sprint(rate), "shop.trusted_proxies": proxyAddr}})
	people, robot := New(t), New(t)
	four := open(t, e, engine.Product{ID: 1, Stock: 2 * accounts})
	honest := four.crowd(1, false, func(i int, name string) Account { return people.Account(e, name).From(fmt.Sprintf("127.0.1.%d", i+1)) })
	oneBudget(four, robot, "127.0.0.66", accounts, func(_ int, a Account) Account { return a })
	honest()
	four.close()

	six := open(t, e, engine.Product{ID: 2, Stock: 2 * accounts})
	honest = six.crowd(2, false, func(i int, name string) Account { // neighbours in other /64 networks
		return people.Account(e, name).From(proxyAddr).Saying("X-Forwarded-For", fmt.Sprintf("2001:db8:0:%x::1", i+1))
	})
	oneBudget(six, robot, proxyAddr, accounts, func(i int, a Account) Account {
		return a.Saying("X-Forwarded-For", fmt.Sprintf("2001:db8:0:66:%x:%x:%x:1", i*7919&0xffff, i*104729&0xffff, i))
	})
	honest()
	six.close()
}

// One embedded engine.
func TestRobot_OneInstanceEnforcesTheLimits(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(*testing.T){
		"guesses":               guesses,
		"clock games":           clockGames,
		"header spoofing":       headerSpoofing,
		"ten thousand accounts": tenThousandAccounts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t)
		})
	}
}
