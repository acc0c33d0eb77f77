package web_test

import (
	"os"
	"testing"

	"seckill/test/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m.Run)) }

// tab is a browser tab with the shopper's page.
type tab struct{ *browser.Tab }

func openTab(t *testing.T, o browser.Options) *tab {
	t.Helper()
	return &tab{browser.Open(t, o)}
}

// signIn uses the demo login.
func (b *tab) signIn() {
	b.Until(`document.querySelector('#demo-name') !== null`)
	b.Click(".demo button")
	b.Until(`document.querySelector('#sign-in').hidden`)
}

func eval[T any](b *tab, expression string) T { return browser.Eval[T](b.Tab, expression) }
