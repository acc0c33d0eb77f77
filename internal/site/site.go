// Package site makes a page ready to be served: every file but index.html gets a
// name that carries the hash of its content, so that browsers and CDNs keep it
// for good and never mistake one version for another. What names another file,
// an import, a style or a tag, names it anew. The page needs no build step for
// this, and none to be served without it.
package site

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Index is the one file whose name stays: the way in.
const Index = "index.html"

// What caches are told of a file.
const (
	// ForGood is for a file whose name is its content's.
	ForGood = "public, max-age=31536000, immutable"
	// AskFirst is for the index: kept, and asked about before each use.
	AskFirst = "no-cache"
)

// artFolder holds pictures that products name by their address, not files of
// the page: they keep their names.
const artFolder = "art/"

// hashChars of a content's hash, in hex, make a name: 48 bits tell apart more
// versions than a page will ever have.
const hashChars = 12

// File is one file of a site.
type File struct {
	Name string // without a slash at its beginning
	Body []byte
	// CacheControl is what caches are told of it.
	CacheControl string
}

// Options of a build.
type Options struct {
	// API is where the page finds the engine; empty is where the page itself is.
	API string
	// Policy, if set, is written into the index too: a host that cannot send the
	// header serves the page under most of it all the same.
	Policy string
}

// Build makes the files of a site from a page, sorted by name, with the index
// last: whoever finds it finds all that it names.
func Build(page fs.FS, opt Options) ([]File, error) {
	b := build{page: page, names: make(map[string]string), open: make(map[string]bool)}
	err := fs.WalkDir(page, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == Index {
			return err
		}
		_, err = b.name(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("build the page: %w", err)
	}
	index, err := b.index(opt)
	if err != nil {
		return nil, fmt.Errorf("build the page: %w", err)
	}
	slices.SortFunc(b.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return append(b.files, File{Name: Index, Body: index, CacheControl: AskFirst}), nil
}

type build struct {
	page  fs.FS
	names map[string]string // new names by old ones
	open  map[string]bool   // files whose references are being named
	files []File
}

// name is the new name of a file, which needs those of the files that it names:
// they are part of its content.
func (b *build) name(old string) (string, error) {
	if name := b.names[old]; name != "" {
		return name, nil
	}
	if b.open[old] {
		return "", fmt.Errorf("%s names itself, over others: neither can be named first", old)
	}
	b.open[old] = true
	body, err := fs.ReadFile(b.page, old)
	if err != nil {
		return "", err
	}
	switch path.Ext(old) {
	case ".js", ".mjs":
		body, err = b.script(old, body)
	case ".css":
		body, err = b.style(old, body)
	}
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(old, artFolder) {
		b.names[old] = old
		b.files = append(b.files, File{Name: old, Body: body, CacheControl: AskFirst})
		return old, nil
	}
	sum := sha256.Sum256(body)
	ext := path.Ext(old)
	name := strings.TrimSuffix(old, ext) + "." + hex.EncodeToString(sum[:])[:hashChars] + ext
	b.names[old] = name
	b.files = append(b.files, File{Name: name, Body: body, CacheControl: ForGood})
	return name, nil
}

func (b *build) has(name string) bool {
	info, err := fs.Stat(b.page, name)
	return err == nil && !info.IsDir()
}

var (
	// quoted is a text in a script that may be a file's name.
	quoted = regexp.MustCompile("(['\"`])((?:\\.{1,2}/)*)([\\w/.-]+\\.\\w+)(['\"`])")
	// address is a file in a style.
	address = regexp.MustCompile(`url\((['"]?)([\w./-]+)(['"]?)\)`)
	tag     = regexp.MustCompile(`<(?:script|link|img)\b[^>]*>`)
	source  = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
	apiMeta = regexp.MustCompile(`(<meta name="seckill-api" content=")[^"]*(">)`)
)

// script names anew what a script names: relative to itself when it begins with
// a dot, as imports and workers do, and then it must be there; else relative to
// the page, as pictures are, if there is such a file.
func (b *build) script(from string, body []byte) ([]byte, error) {
	return replace(quoted, body, func(part [][]byte) ([]byte, error) {
		open, dots, rest, end := string(part[1]), string(part[2]), string(part[3]), string(part[4])
		target := path.Clean(rest)
		if dots != "" {
			target = path.Join(path.Dir(from), dots+rest)
		}
		if open != end || dots == "" && !b.has(target) {
			return part[0], nil
		}
		name, err := b.name(target)
		if err != nil {
			return nil, fmt.Errorf("%s names %s: %w", from, dots+rest, err)
		}
		return []byte(open + dots + path.Join(path.Dir(rest), path.Base(name)) + end), nil
	})
}

func (b *build) style(from string, body []byte) ([]byte, error) {
	return replace(address, body, func(part [][]byte) ([]byte, error) {
		ref := string(part[2])
		name, err := b.name(path.Join(path.Dir(from), ref))
		if err != nil {
			return nil, fmt.Errorf("%s names %s: %w", from, ref, err)
		}
		return []byte("url(" + string(part[1]) + path.Join(path.Dir(ref), path.Base(name)) + string(part[3]) + ")"), nil
	})
}

// index names the files of the page's own tags anew, with what they must
// contain, and says where the API is.
func (b *build) index(opt Options) ([]byte, error) {
	body, err := fs.ReadFile(b.page, Index)
	if err != nil {
		return nil, err
	}
	body, err = replace(tag, body, func(part [][]byte) ([]byte, error) { return b.tag(string(part[0])) })
	if err != nil {
		return nil, err
	}
	if opt.API != "" {
		if !apiMeta.Match(body) {
			return nil, fmt.Errorf(`%s has no <meta name="seckill-api" content="">`, Index)
		}
		body = apiMeta.ReplaceAll(body, []byte("${1}"+strings.ReplaceAll(html.EscapeString(opt.API), "$", "$$")+"${2}"))
	}
	if opt.Policy != "" {
		policy := strings.ReplaceAll(opt.Policy, frameAncestors, "") // which counts in a header only
		meta := `<meta http-equiv="Content-Security-Policy" content="` + html.EscapeString(policy) + `">`
		body = []byte(strings.Replace(string(body), "<head>", "<head>\n  "+meta, 1))
	}
	return body, nil
}

func (b *build) tag(text string) ([]byte, error) {
	found := source.FindStringSubmatchIndex(text)
	if found == nil {
		return []byte(text), nil
	}
	old := text[found[2]:found[3]]
	if !b.has(path.Clean(old)) {
		return []byte(text), nil
	}
	name, err := b.name(path.Clean(old))
	if err != nil {
		return nil, fmt.Errorf("%s names %s: %w", Index, old, err)
	}
	named := text[:found[2]] + name + text[found[3]:]
	if strings.HasPrefix(text, "<img") || strings.Contains(text, `rel="icon"`) {
		return []byte(named), nil // of these browsers check nothing
	}
	i := slices.IndexFunc(b.files, func(f File) bool { return f.Name == name })
	sum := sha512.Sum384(b.files[i].Body)
	integrity := ` integrity="sha384-` + base64.StdEncoding.EncodeToString(sum[:]) + `">`
	return []byte(strings.TrimSuffix(named, ">") + integrity), nil
}

// replace replaces each match of a pattern, whose parts are given.
func replace(pattern *regexp.Regexp, body []byte, with func(part [][]byte) ([]byte, error)) ([]byte, error) {
	var failed error
	body = pattern.ReplaceAllFunc(body, func(match []byte) []byte {
		instead, err := with(pattern.FindSubmatch(match))
		if err != nil && failed == nil {
			failed = err
		}
		return instead
	})
	return body, failed
}
