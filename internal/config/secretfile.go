package config

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"seckill/internal/datadir"
)

// generatedBytes is the length of a generated secret: 256 bits.
const generatedBytes = 32

// FillSecrets reads every secret that is not set from the data directory, and
// generates a missing one there first. Processes that start together on one
// directory get the same secrets. It generates none if instances share Redis or
// MySQL: other instances would have different ones.
func (c *Config) FillSecrets() error {
	if c.shared() {
		return c.checkShared()
	}
	return c.fillSecrets(createSecret)
}

// ReadSecrets reads secrets from the data directory and generates none. Commands
// beside a server use it: they must not create a secret that the server does not have.
func (c *Config) ReadSecrets() error {
	return c.fillSecrets(func(path string) (Secret, error) {
		kept, err := readSecret(path)
		if errors.Is(err, fs.ErrNotExist) {
			return Secret{}, nil
		}
		return kept, err
	})
}

func (c *Config) fillSecrets(kept func(path string) (Secret, error)) error {
	unset := c.unsetSecrets()
	if len(unset) == 0 {
		return nil
	}
	if err := checkSecretDir(c.secretDir()); err != nil {
		return err
	}
	var errs []error
	for _, k := range unset {
		secret, err := kept(filepath.Join(c.secretDir(), k.name))
		if err != nil {
			errs = append(errs, fmt.Errorf("kept %s: %w", k.name, err))
			continue
		}
		*k.field.(*Secret) = secret
	}
	return errors.Join(errs...)
}

// unsetSecrets returns the engine's own secrets that are not set, without passwords
// of other servers.
func (c *Config) unsetSecrets() []key {
	own := []*Secret{&c.Admin.Token, &c.Auth.JWTSecret, &c.Token.Secret, &c.Payment.SandboxSecret}
	var unset []key
	for _, k := range c.keys() {
		s, ok := k.field.(*Secret)
		if ok && !s.IsSet() && slices.Contains(own, s) && !(s == &c.Auth.JWTSecret && c.keysAlone()) {
			unset = append(unset, k)
		}
	}
	return unset
}

// keysAlone reports whether buyers' tokens need no shared secret, because the
// shop's public keys are the same for all instances.
func (c *Config) keysAlone() bool { return c.shared() && c.Auth.JWKSURL != "" }

func (c *Config) secretDir() string { return filepath.Join(c.DataDir, "secrets") }

// checkSecretDir refuses a directory in which every user can replace our secrets.
// A sticky directory, such as a volume that a cluster mounts, is allowed: only
// owners can replace their files there.
func checkSecretDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read secrets: %w", err)
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("read secrets: every user may write to %s (mode %04o): chmod 700 it, and check that its files are yours", dir, mode.Perm())
	}
	return nil
}

func readSecret(path string) (Secret, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Secret{}, err
	}
	// Group rights are allowed: volume drivers add them when they mount.
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return Secret{}, fmt.Errorf("every user can read %s (mode %04o): chmod 600 it, or delete it to get a new one", path, mode)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Secret{}, err
	}
	kept := NewSecret(strings.TrimSpace(string(data)))
	if err := checkSecret(kept); err != nil {
		return Secret{}, fmt.Errorf("%s: %w", path, err)
	}
	return kept, nil
}

// createSecret reads a secret, or creates it. If another process created it first,
// it returns the secret of the other process.
func createSecret(path string) (Secret, error) {
	if kept, err := readSecret(path); !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Secret{}, err
	}
	random := make([]byte, generatedBytes)
	rand.Read(random) // never returns an error
	temp, err := writeTemp(dir, base64.RawURLEncoding.EncodeToString(random)+"\n")
	if err != nil {
		return Secret{}, err
	}
	defer func() { _ = os.Remove(temp) }() // a leftover is never read
	// Unlike a rename, a link does not replace the file of another process.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Secret{}, err
	}
	if err := datadir.Sync(dir); err != nil {
		return Secret{}, err
	}
	return readSecret(path)
}

// writeTemp writes and syncs a file. os.CreateTemp gives it mode 0600.
func writeTemp(dir, text string) (path string, err error) {
	file, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}
