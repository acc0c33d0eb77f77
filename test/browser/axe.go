package browser

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/chromedp/chromedp"
)

// axeSource names the package that carries axe-core, and its checksum. It is
// fetched, not kept here: `make test` does that, or by hand
//
//	pip download --no-deps --require-hashes -r test/browser/axe.txt -d ~/.cache/seckill
//
//go:embed axe.txt
var axeSource string

const axeFile = "axe_playwright_python/axe.min.js"

// loadAxe reads axe-core from the user's cache directory, once.
var loadAxe = sync.OnceValues(func() (string, error) {
	want := regexp.MustCompile(`sha256:([0-9a-f]{64})`).FindStringSubmatch(axeSource)[1]
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	wheels, err := filepath.Glob(filepath.Join(cache, "seckill", "axe_playwright_python-*.whl"))
	if err != nil {
		return "", err
	}
	for _, path := range wheels {
		wheel, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if sum := sha256.Sum256(wheel); hex.EncodeToString(sum[:]) != want {
			continue
		}
		archive, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
		if err != nil {
			return "", err
		}
		script, err := fs.ReadFile(archive, axeFile)
		return string(script), err
	}
	return "", fmt.Errorf("no wheel with checksum %s under %s", want, cache)
})

// Accessible fails the test with each thing that axe-core finds wrong with what
// the tab shows now.
func (b *Tab) Accessible(state string) {
	b.t.Helper()
	script, err := loadAxe()
	if err != nil {
		b.t.Skipf("MISSING: axe-core, for the accessibility of the page: %v", err)
	}
	_, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("globalThis.axe ? true : ("+"() => {"+script+"\nreturn true; })()"))
	b.must(err)
	found := Eval[[]string](b, `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
		violations.flatMap((v) => v.nodes.map((n) => v.id + ' at ' + n.target + ': ' + n.failureSummary)))`)
	for _, one := range found {
		b.t.Errorf("%s: %s", state, one)
	}
}
