package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"seckill"
	"seckill/internal/api"
)

const (
	// deleteTries bounds the requests of one deletion. Each runs for up to two minutes
	// and answers busy while there is more to delete.
	deleteTries = 100
	deletePause = time.Second
)

func (p *program) deleteCommand() *cobra.Command {
	var flags saleFlags
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a test product with its orders",
		Long: `Delete deletes test product ID, which was created with "test", with its orders,
payments, events and all else that store and ledger have of it; its audit stays. Its sale
must have ended. A real product is never deleted.

While purchases of it are queued, or a refund of it is due, it asks again until it
can. A large product takes minutes. Interrupted, run it again: it goes on.

It asks first; --yes answers for you.
` + saleNote,
		Example: `  seckill delete 1
  seckill delete 1 --yes --reason "rehearsal is over"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, client, err := flags.product(p, cmd, args[0])
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Go on with the deletion of product %d?", id)
			product, err := client.Product(cmd.Context(), id)
			switch {
			case err == nil:
				question = fmt.Sprintf("Delete product %d, %q, with its orders for good?", id, product.Name)
			case !refusedWith(err, seckill.CodeNotFound): // not_found may mean that an earlier deletion is not finished
				return fmt.Errorf("delete %d: %w", id, err)
			}
			if err := p.confirm(cmd.Context(), flags.yes, question); err != nil {
				return err
			}
			stop := p.progress("Deleting product %d", id)
			err = deleteProduct(cmd.Context(), client, id)
			stop()
			if err != nil {
				return fmt.Errorf("delete %d: %w", id, err)
			}
			fmt.Fprintf(p.out, "product %d is deleted with its orders\n", id)
			return nil
		},
	}
	flags.bind(cmd)
	flags.bindYes(cmd)
	return cmd
}

// deleteProduct repeats the request until everything is deleted or the engine refuses.
func deleteProduct(ctx context.Context, client *api.Client, id uint32) error {
	for try := 1; ; try++ {
		_, err := client.Delete(ctx, id)
		if !refusedWith(err, seckill.CodeBusy) || try == deleteTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(deletePause):
		}
	}
}

func refusedWith(err error, code seckill.Code) bool {
	var no *api.Refusal
	return errors.As(err, &no) && no.Document.Code == code
}
