package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"seckill"
	"seckill/internal/auth"
)

// maxTokenTTL bounds the lifetime of a token for trials.
const maxTokenTTL = 365 * 24 * time.Hour

func (p *program) tokenCommand() *cobra.Command {
	var from settings
	var user string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "token --user U",
		Short: "Print a buyer's JWT, for trying things out",
		Long: `Token prints a JWT (HS256) that makes its bearer buyer U, signed with
auth.jwt_secret, or with the secret that the server generated under its data_dir.
Whoever has it can buy as U until it expires.`,
		Example: `  seckill token --user alice
  curl -H "Authorization: Bearer $(seckill token --user alice)" http://127.0.0.1:8080/api/v1/orders`,
		Args:    cobra.NoArgs,
		GroupID: groupTool,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user == "" {
				return usageErrorf("--user is required: the buyer that the bearer is")
			}
			if err := seckill.CheckBuyer(user); err != nil {
				return usageErrorf("--user: %w", err)
			}
			if ttl < time.Second || ttl > maxTokenTTL {
				return usageErrorf("--ttl must be 1s to %s", maxTokenTTL)
			}
			cfg, err := from.load(p, cmd)
			if err != nil {
				return err
			}
			if err := cfg.ReadSecrets(); err != nil {
				return err
			}
			if !cfg.Auth.JWTSecret.IsSet() {
				return errors.New("no secret to sign with: set auth.jwt_secret, or name the data_dir of a server that ran once")
			}
			signer, err := auth.NewSigner(cfg.Auth.JWTSecret.Bytes(), cfg.Auth.Issuer, cfg.Auth.Audience)
			if err != nil {
				return err
			}
			signed, err := signer.Sign(user, p.now().Add(ttl))
			if err != nil {
				return err
			}
			fmt.Fprintln(p.out, signed)
			return nil
		},
	}
	from.bind(cmd)
	cmd.Flags().StringVarP(&user, "user", "u", "", "buyer `U` that the bearer is, 1 to 64 bytes")
	cmd.Flags().DurationVar(&ttl, "ttl", 24*time.Hour, "time until it expires")
	return cmd
}
