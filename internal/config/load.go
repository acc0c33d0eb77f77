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

// Sources is where a configuration comes from, weakest first.
type Sources struct {
	File    string    // path of a YAML file; "" for the one that FileVar names, or none
	Environ []string  // as os.Environ gives it; other programs' variables are ignored
	Flags   []Setting // the last one of a key wins
	// Files also looks at the files that the configuration names and a shop
	// reads: not every command is run by a user who may.
	Files bool
	// NoSinks is for commands that send no events. They do not need the secrets of
	// sinks, which a shell of an operator may not have.
	NoSinks bool
}

// FileVar names the file for all commands of a shell.
const FileVar = envPrefix + "CONFIG"

// Setting is one key set by a flag. Flag is what the person typed, for the
// error message, such as "--shop-listen".
type Setting struct {
	Flag, Key, Value string
}

// Load reads the sources over the defaults and checks the result. The error
// names everything that is wrong, one line each.
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
			name = value // the last one counts, as for every variable
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
	// Where the login's public keys are all that counts, nobody here has a key to
	// sign with.
	found.when(c.Page.LoginURL != "" && c.keysAlone() && !c.Auth.JWTSecret.IsSet(),
		"page.login_url", "needs auth.jwt_secret, which signs the tokens that login codes are exchanged for")
	found.apart("shop.tls_cert", c.Shop.TLSCert != "", "shop.tls_key", c.Shop.TLSKey != "")
	return errors.Join(found.err(), c.checkShared(), c.checkBrokers(), c.checkSinks(), c.checkClientTLS(), c.checkChallenge())
}

// checkChallenge holds that a challenge protects something, and what the shop's
// own verifier needs.
func (c *Config) checkChallenge() error {
	var found findings
	found.when(c.Challenge.Kind != string(challenge.None) && !c.Token.Required,
		"challenge.kind", "%s protects nothing while token.required is false: purchases need no token, and so no answer; set token.required to true, or challenge.kind to none", c.Challenge.Kind)
	asksShop := c.Challenge.Kind == string(challenge.Shop)
	found.when(asksShop && c.Challenge.VerifyURL == "", "challenge.verify_url", "must be set with challenge.kind shop")
	found.when(asksShop && !c.Challenge.VerifySecret.IsSet(), "challenge.verify_secret", "must be set with challenge.kind shop")
	return found.err()
}

func hasPortZero(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && strings.Trim(port, "0") == ""
}

// loading gathers errors while one source after the other is laid over the
// defaults.
type loading struct {
	cfg    *Config
	keys   []key
	errs   []error
	origin map[string]string // of a key's value: where it was set
}

func (l *loading) errorf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// environ reads SECKILL_ variables. An empty one counts as not set, as
// container files pass on variables that nobody filled.
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
			// Instances that are restarted one by one may share one file of secrets.
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

// env is the variable of a key; "" for members of a sink that are no secrets.
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

// flags reads what the command line sets. It takes no secrets, and no address
// with a user or a query, which may be one: every user of the machine can read
// the arguments of a process.
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

// apply sets one source's values; where says where a value stands.
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
