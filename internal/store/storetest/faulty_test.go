package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
)

// counting is a minimal store that counts its calls.
type counting struct {
	store.Store
	confirms, pings int
}

func (c *counting) Confirm(context.Context, store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	c.confirms++
	return []store.ConfirmOutcome{store.ConfirmNew}, nil
}

func (c *counting) Ping(context.Context) error {
	c.pings++
	return nil
}

func TestFaulty_WrapsEveryMethod(t *testing.T) {
	for method := range storeMethods {
		if method == AnyMethod {
			continue
		}
		t.Run(method, func(t *testing.T) {
			f := NewFaulty(nil) // a call that got through would panic
			f.FailBefore(method, 1)
			if err := callWithZeros(t, f, method); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("error is %v, want ErrUnavailable", err)
			}
			if n := f.Calls(method); n != 1 {
				t.Errorf("counted %d calls, want 1", n)
			}
		})
	}
}

// callWithZeros calls a method with zero arguments and returns its error.
func callWithZeros(t *testing.T, f *Faulty, method string) error {
	t.Helper()
	fn := reflect.ValueOf(f).MethodByName(method)
	args := []reflect.Value{reflect.ValueOf(t.Context())}
	fixed := fn.Type().NumIn()
	if fn.Type().IsVariadic() {
		fixed--
	}
	for i := 1; i < fixed; i++ {
		args = append(args, reflect.Zero(fn.Type().In(i)))
	}
	results := fn.Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	return err
}

func TestFaulty_FailsBeforeOrAfter(t *testing.T) {
	inner := &counting{}
	f := NewFaulty(inner)
	f.FailBefore("Ping", 2)
	for range 2 {
		wantError(t, f.Ping(t.Context()), store.ErrUnavailable)
	}
	equal(t, "calls that came through", inner.pings, 0)
	must(t, f.Ping(t.Context()))

	f.FailAfter(AnyMethod, 1)
	outcomes, err := f.Confirm(t.Context(), store.ConfirmRequest{})
	wantError(t, err, store.ErrUnavailable)
	equal(t, "outcomes whose reply was lost", len(outcomes), 0)
	equal(t, "confirms that happened", inner.confirms, 1)
	must(t, f.Ping(t.Context()))

	f.FailBefore(AnyMethod, Always)
	for range 5 {
		wantError(t, f.Ping(t.Context()), store.ErrUnavailable)
	}
	f.Heal()
	must(t, f.Ping(t.Context()))
}

func TestFaulty_Poison(t *testing.T) {
	f := NewFaulty(&counting{})
	f.Poison("mallory")
	mallory := store.Item{Claim: seckill.Claim{Buyer: "mallory"}}
	bob := store.Item{Claim: seckill.Claim{Buyer: "bob"}}

	_, err := f.Confirm(t.Context(), store.ConfirmRequest{Items: []store.Item{bob, mallory}})
	wantError(t, err, ErrPoison)
	if errors.Is(err, store.ErrUnavailable) {
		t.Error("poison is an error of the data, not an outage")
	}
	_, err = f.Confirm(t.Context(), store.ConfirmRequest{Items: []store.Item{bob}, Park: []store.Parked{{Item: mallory}}})
	must(t, err)
	f.Cure("mallory")
	_, err = f.Confirm(t.Context(), store.ConfirmRequest{Items: []store.Item{bob, mallory}})
	must(t, err)
}

func TestFaulty_BlocksUntilOpened(t *testing.T) {
	f := NewFaulty(&counting{})
	gate := f.Block("Ping")
	done := make(chan error, 1)
	go func() { done <- f.Ping(t.Context()) }()
	<-gate.Arrived()
	select {
	case err := <-done:
		t.Fatalf("a blocked call returned %v", err)
	default:
	}
	gate.Open()
	must(t, <-done)
	must(t, f.Ping(t.Context()))

	f.Block(AnyMethod)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	wantError(t, f.Ping(ctx), store.ErrUnavailable)
}

func TestFaulty_RefusesUnknownMethods(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a fault of a method that does not exist was taken")
		}
	}()
	NewFaulty(nil).FailBefore("Confrim", 1)
}
