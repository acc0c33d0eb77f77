package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"seckill/internal/challenge"
	"seckill/internal/fault"
)

// Sources are the sources of a configuration. Later ones override earlier ones.
type Sources struct {
	File    string    // path of a YAML file; "" for the one that FileVar names, or none
	Environ []string  // as os.Environ gives it; other programs' variables are ignored
	Flags   []Setting // the last one of a key wins
	// Files also checks the files that the configuration names. Only the shop needs
	// them: other commands may run as a user without the rights to read them.
	Files bool
	// NoSinks is for commands that send no events. An operator's shell may not have
	// the secrets of sinks.
	NoSinks bool
}

// FileVar is the variable with the path of the file.
const FileVar = envPrefix + "CONFIG"

// Setting is one key set by a flag. Flag is the text as typed, such as
// "--shop-listen", for error messages.
type Setting struct {
	Flag, Key, Value string
}

// Load applies the sources to the defaults and checks the result. The error has
// one line for each problem.
func Load(from Sources) (*Config, error) {
	cfg := Default()
	loading := loading{cfg: cfg, keys: cfg.keys(), origin: make(map[string]string)}
	if path := from.file(); path != "" {
		loading.file(path)
	}
	loading.environ(from.Environ)
	loading.flags(from.Flags)
	errs := append(loading.errs, loading.placed(cfg.Check()))
	if !from.NoSinks {
		errs = append(errs, loading.placed(cfg.checkSinkSecrets()))
	}
	if from.Files {
		errs = append(errs, loading.placed(cfg.checkFiles()))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return cfg, nil
}

func (s *Sources) file() string {
	name := s.File
	for _, variable := range s.Environ {
		if value, found := strings.CutPrefix(variable, FileVar+"="); found && s.File == "" {
			name = value // the last one wins, as for every variable
		}
	}
	return name
}

// Check reports every value that is out of range or not in this build.
func (c *Config) Check() error {
	var found findings
	for _, k := range c.keys() {
		for _, err := range lines(k.rule.check(k.field)) {
			found = append(found, &misfit{k.name, err})
		}
	}
	found.when(c.Shop.Listen == c.Admin.Listen && !hasPortZero(c.Shop.Listen),
		"admin.listen", "must not be shop.listen (%s): the operator API never shares the public port", c.Shop.Listen)
	found.when(c.Purchase.MaxBatch > c.Purchase.QueueSize,
		"purchase.max_batch", "must not exceed purchase.queue_size (%d), not %d", c.Purchase.QueueSize, c.Purchase.MaxBatch)
	// If only the login's public keys are accepted, the engine has no key to sign with.
	found.when(c.Page.LoginURL != "" && c.keysAlone() && !c.Auth.JWTSecret.IsSet(),
		"page.login_url", "needs auth.jwt_secret, which signs the tokens that login codes are exchanged for")
	found.apart("shop.tls_cert", c.Shop.TLSCert != "", "shop.tls_key", c.Shop.TLSKey != "")
	return errors.Join(found.err(), c.checkShared(), c.checkBrokers(), c.checkSinks(), c.checkClientTLS(), c.checkChallenge())
}

// checkChallenge checks that a challenge has an effect, and that the shop's own
// verifier has its settings.
func (c *Config) checkChallenge() error {
	var found findings
	found.when(c.Challenge.Kind != string(challenge.None) && !c.Token.Required,
		"challenge.kind", "%s has no effect while token.required is false, because purchases need no token: set token.required to true, or challenge.kind to none", c.Challenge.Kind)
	asksShop := c.Challenge.Kind == string(challenge.Shop)
	found.when(asksShop && c.Challenge.VerifyURL == "", "challenge.verify_url", "must be set with challenge.kind shop")
	found.when(asksShop && !c.Challenge.VerifySecret.IsSet(), "challenge.verify_secret", "must be set with challenge.kind shop")
	return found.err()
}

func hasPortZero(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && strings.Trim(port, "0") == ""
}

// loading collects the errors while the sources are applied one after another.
type loading struct {
	cfg    *Config
	keys   []key
	errs   []error
	origin map[string]string // by key: where its value was set
}

func (l *loading) errorf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// environ reads SECKILL_ variables. An empty variable counts as not set, because
// container files pass on empty variables.
func (l *loading) environ(environ []string) {
	names := map[string]string{}
	for _, k := range l.keys {
		if env := l.env(k); env != "" {
			names[env] = k.name
		}
	}
	values, variables := map[string]any{}, map[string]string{}
	for _, setting := range environ {
		variable, value, _ := strings.Cut(setting, "=")
		if !strings.HasPrefix(variable, envPrefix) || variable == fault.EnvVar || variable == FileVar || value == "" {
			continue
		}
		name, known := names[variable]
		if sink := sinkOfSecret(variable); !known && sink != "" {
			// This is not an error: during a rolling restart, instances with different
			// sinks may share one file of secrets.
			l.cfg.unusedSecrets = append(l.cfg.unusedSecrets, fmt.Sprintf("environment: %s: no sink named %s is configured", variable, sink))
			continue
		}
		if !known {
			l.errorf("environment: %s: unknown variable", variable)
			continue
		}
		values[name], variables[name] = value, variable
	}
	l.apply(values, func(name string) string { return "environment: " + variables[name] })
}

// env returns the variable of a key. Members of a sink have none, except secrets.
func (l *loading) env(k key) string {
	for i := range l.cfg.Sinks {
		member, ofSink := strings.CutPrefix(k.name, sinkKey(i, ""))
		if !ofSink {
			continue
		}
		if _, secret := k.field.(*Secret); secret && l.cfg.Sinks[i].Name != "" {
			return sinkEnv(l.cfg.Sinks[i].Name, member)
		}
		return ""
	}
	return k.env()
}

// flags reads the flags. It refuses secrets, and addresses with a user or a query,
// which may contain a secret: every user of the machine can read the arguments of
// a process.
func (l *loading) flags(settings []Setting) {
	values, flags := map[string]any{}, map[string]string{}
	for _, s := range settings {
		if s.Key == sinksKey || strings.HasPrefix(s.Key, sinksKey+"[") || strings.HasPrefix(s.Key, sinksKey+".") {
			l.errorf("%s: %s: sinks are set in the configuration file only", s.Flag, s.Key)
			continue
		}
		isPrivate := func(k key) bool { return k.name == s.Key && k.private() }
		if slices.ContainsFunc(l.keys, isPrivate) || PrintableURL(s.Value) != s.Value {
			l.errorf("%s: %s: must not be set by a flag, as the process list would show it: set %s in the environment, or the key in the configuration file", s.Flag, s.Key, key{name: s.Key}.env())
			continue
		}
		values[s.Key], flags[s.Key] = s.Value, s.Flag
	}
	l.apply(values, func(name string) string { return flags[name] + ": " + name })
}

// apply sets the values of one source. where returns the place of a value for errors.
func (l *loading) apply(values map[string]any, where func(name string) string) {
	for _, k := range l.keys {
		value, found := values[k.name]
		if !found {
			continue
		}
		errs := lines(k.set(value))
		for _, err := range errs {
			l.errorf("%s: %w", where(k.name), err)
		}
		if len(errs) == 0 {
			l.origin[k.name] = where(k.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !l.isKey(name) {
			l.errorf("%s: unknown key", where(name))
		}
	}
}

func (l *loading) isKey(name string) bool {
	return slices.ContainsFunc(l.keys, func(k key) bool { return k.name == name })
}

func (l *loading) isSection(name string) bool {
	return slices.ContainsFunc(l.keys, func(k key) bool { return strings.HasPrefix(k.name, name+".") })
}
