package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"seckill/internal/api"
	"seckill/internal/config"
)

// saleFlags are the common flags of commands that call the operator API.
type saleFlags struct {
	settings
	admin   string
	reason  string
	timeout time.Duration
	yes     bool
}

// saleTimeout is longer than the server's deadline of two minutes for work on every
// order of a product. The server's answer says more than a timeout here.
const saleTimeout = 150 * time.Second

func (f *saleFlags) bind(cmd *cobra.Command) {
	f.bindReading(cmd)
	f.bindReason(cmd)
	cmd.Args = oneArg("the product's ID")
	cmd.GroupID = groupSale
}

func (f *saleFlags) bindReason(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "`TEXT` for the audit: why it is done")
}

// bindYes adds --yes, for a command that asks first.
func (f *saleFlags) bindYes(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
}

// bindReading adds the flags of a command that changes nothing.
func (f *saleFlags) bindReading(cmd *cobra.Command) {
	f.settings.bind(cmd)
	cmd.Flags().StringVar(&f.admin, "admin", "", "`URL` of the operator API (default: from admin.listen)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", saleTimeout, "longest to wait for the answer")
}

// client returns a client of the operator API. The token is from the configuration
// or from the server's data directory.
func (f *saleFlags) client(p *program, cmd *cobra.Command) (*api.Client, error) {
	cfg, err := f.load(p, cmd)
	if err != nil {
		return nil, err
	}
	if err := cfg.ReadSecrets(); err != nil {
		return nil, err
	}
	if f.timeout <= 0 {
		return nil, usageErrorf("--timeout must be above 0")
	}
	return api.NewClient(api.ClientOptions{
		URL: f.url(cfg), Token: cfg.Admin.Token.Reveal(), Timeout: f.timeout, Operator: "cli", Reason: f.reason,
	})
}

// product parses a product id and returns it with a client.
func (f *saleFlags) product(p *program, cmd *cobra.Command, arg string) (id uint32, client *api.Client, err error) {
	if id, err = productID(arg); err == nil {
		client, err = f.client(p, cmd)
	}
	return id, client, err
}

func (f *saleFlags) url(cfg *config.Config) string {
	if f.admin != "" {
		return f.admin
	}
	return cfg.Admin.URL(cfg.Admin.Listen)
}

func productID(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil || id == 0 {
		return 0, usageErrorf("product ID must be 1 to 4294967295, not %q", text)
	}
	return uint32(id), nil
}

const saleNote = `
It is a client of a running server's operator API. The token is admin.token, or
the one that the server generated under its data_dir.`
