package storetest

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/store"
)

// The methods of store.Takeovers, as in faulty_methods.go.

func (f *Faulty) KeepInstance(ctx context.Context, instance store.Instance, ttl time.Duration) (shops int, lapsed bool, err error) {
	err = tell(f, ctx, "KeepInstance", func() (err error) {
		shops, lapsed, err = f.inner.KeepInstance(ctx, instance, ttl)
		return err
	})
	return shops, lapsed, err
}

func (f *Faulty) LeaveInstance(ctx context.Context, instance string) error {
	return tell(f, ctx, "LeaveInstance", func() error { return f.inner.LeaveInstance(ctx, instance) })
}

func (f *Faulty) Instances(ctx context.Context) ([]store.Instance, error) {
	return ask(f, ctx, "Instances", func() ([]store.Instance, error) { return f.inner.Instances(ctx) })
}

func (f *Faulty) TakeOver(ctx context.Context, id uint32, seen uint64, actor store.Actor) (seckill.Product, error) {
	return ask(f, ctx, "TakeOver", func() (seckill.Product, error) { return f.inner.TakeOver(ctx, id, seen, actor) })
}

func (f *Faulty) Acknowledge(ctx context.Context, id uint32, epoch uint64, instance string) error {
	return tell(f, ctx, "Acknowledge", func() error { return f.inner.Acknowledge(ctx, id, epoch, instance) })
}

func (f *Faulty) OpenStore(ctx context.Context, id uint32, epoch uint64) (bool, error) {
	return ask(f, ctx, "OpenStore", func() (bool, error) { return f.inner.OpenStore(ctx, id, epoch) })
}
