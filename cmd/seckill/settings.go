package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"seckill/internal/config"
)

// settings are the flags that select and override the configuration.
type settings struct {
	file      string
	pairs     []string
	shortcuts []shortcut
	files     bool // also check the files that the configuration names
	serves    bool // for serve: the secrets of sinks must be set
}

// shortcut is a flag for a key that is often set.
type shortcut struct{ flag, key string }

func (s *settings) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.file, "config", "c", "", "YAML `FILE` with the configuration")
	flags.StringArrayVar(&s.pairs, "set", nil, "set one `KEY=VALUE` of the configuration, no secret; repeatable")
	s.bindKey(cmd, "data-dir", "data_dir", "`DIR` of journal, store and generated secrets")
}

// bindKey adds a shortcut. The help shows the key's default. The flag itself has
// none: an unset flag does not override file and environment.
func (s *settings) bindKey(cmd *cobra.Command, flag, key, usage string) {
	cmd.Flags().String(flag, "", fmt.Sprintf("%s (sets %s)", usage, key))
	s.shortcuts = append(s.shortcuts, shortcut{flag, key})
}

// load reads file, environment and flags, in this order.
func (s *settings) load(p *program, cmd *cobra.Command) (*config.Config, error) {
	from := config.Sources{File: s.file, Environ: p.environ, Files: s.files, NoSinks: !s.serves}
	for _, pair := range s.pairs {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, usageErrorf("--set %s: must be KEY=VALUE", pair)
		}
		from.Flags = append(from.Flags, config.Setting{Flag: "--set", Key: key, Value: value})
	}
	for _, short := range s.shortcuts {
		if flag := cmd.Flags().Lookup(short.flag); flag.Changed {
			from.Flags = append(from.Flags, config.Setting{Flag: "--" + short.flag, Key: short.key, Value: flag.Value.String()})
		}
	}
	cfg, err := config.Load(from)
	if err != nil {
		return nil, fmt.Errorf("the configuration is not valid:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return cfg, nil
}
