// BuildPage makes a page ready to be served: every file but index.html lies in
// a folder whose name is the hash of all of them, so that browsers and CDNs keep
// it for good and never mistake one version for another. Scripts and styles name
// each other relative to themselves, so that only the index has to name the
// folder. The page needs no build step for this, and none to be served without it.

package shopapi

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
	// ForGood is for a file in the folder of its version.
	ForGood = "public, max-age=31536000, immutable"
	// AskFirst is for the index: kept, and asked about before each use.
	AskFirst = "no-cache"
)

// artFolder holds pictures that products name by their address, not files of
// the page: they keep their names.
const artFolder = "art/"

// hashChars of the page's hash, in hex, make the folder's name: 48 bits tell apart
// more versions than a page will ever have.
const hashChars = 12

// PageFile is one file of a site.
type PageFile struct {
	Name string // without a slash at its beginning
	Body []byte
	// CacheControl is what caches are told of it.
	CacheControl string
}

// PageOptions of a build.
type PageOptions struct {
	// API is where the page finds the engine; empty is where the page itself is.
	API string
	// Policy, if set, is written into the index too: a host that cannot send the
	// header serves the page under most of it all the same.
	Policy string
}

// BuildPage makes the files of a site from a page, sorted by name, with the index
// last: whoever finds it finds all that it names.
func BuildPage(page fs.FS, opt PageOptions) ([]PageFile, error) {
	b := build{bodies: make(map[string][]byte)}
	if err := b.read(page); err != nil {
		return nil, fmt.Errorf("build the page: %w", err)
	}
	index, err := b.index(opt)
	if err != nil {
		return nil, fmt.Errorf("build the page: %w", err)
	}
	var files []PageFile
	for name, body := range b.bodies {
		switch {
		case name == Index:
		case strings.HasPrefix(name, artFolder):
			files = append(files, PageFile{Name: name, Body: body, CacheControl: AskFirst})
		default:
			files = append(files, PageFile{Name: b.folder + name, Body: body, CacheControl: ForGood})
		}
	}
	slices.SortFunc(files, func(a, b PageFile) int { return strings.Compare(a.Name, b.Name) })
	return append(files, PageFile{Name: Index, Body: index, CacheControl: AskFirst}), nil
}

type build struct {
	bodies map[string][]byte // by the names that the page gives
	folder string            // of this version, with a slash at its end
}

// read takes the page's files, and names the folder by them.
func (b *build) read(page fs.FS) error {
	all := sha256.New()
	err := fs.WalkDir(page, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(page, name)
		if err != nil {
			return err
		}
		b.bodies[name] = body
		if name != Index && !strings.HasPrefix(name, artFolder) {
			fmt.Fprintf(all, "%s %d\n%s", name, len(body), body)
		}
		return nil
	})
	b.folder = hex.EncodeToString(all.Sum(nil))[:hashChars] + "/"
	return err
}

var (
	// tag is one that may name a file.
	tag     = regexp.MustCompile(`<(?:script|link|img)\b[^>]*>`)
	source  = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
	apiMeta = regexp.MustCompile(`(<meta name="seckill-api" content=")[^"]*(">)`)
)

// index names the folder in the page's own tags, with what their files must
// contain, and says where the API is.
func (b *build) index(opt PageOptions) ([]byte, error) {
	if b.bodies[Index] == nil {
		return nil, fmt.Errorf("it has no %s", Index)
	}
	body := tag.ReplaceAllStringFunc(string(b.bodies[Index]), b.tag)
	if opt.API != "" {
		if !apiMeta.MatchString(body) {
			return nil, fmt.Errorf(`%s has no <meta name="seckill-api" content="">`, Index)
		}
		body = apiMeta.ReplaceAllString(body, "${1}"+strings.ReplaceAll(html.EscapeString(opt.API), "$", "$$")+"${2}")
	}
	if opt.Policy != "" {
		policy := strings.ReplaceAll(opt.Policy, frameAncestors, "") // which counts in a header only
		meta := `<meta http-equiv="Content-Security-Policy" content="` + html.EscapeString(policy) + `">`
		body = strings.Replace(body, "<head>", "<head>\n  "+meta, 1)
	}
	return []byte(body), nil
}

func (b *build) tag(text string) string {
	found := source.FindStringSubmatchIndex(text)
	if found == nil {
		return text
	}
	name := path.Clean(text[found[2]:found[3]])
	body := b.bodies[name]
	if body == nil || strings.HasPrefix(name, artFolder) {
		return text
	}
	named := text[:found[2]] + b.folder + name + text[found[3]:]
	if strings.HasPrefix(text, "<img") || strings.Contains(text, `rel="icon"`) {
		return named // of these browsers check nothing
	}
	sum := sha512.Sum384(body)
	integrity := ` integrity="sha384-` + base64.StdEncoding.EncodeToString(sum[:]) + `">`
	return strings.TrimSuffix(named, ">") + integrity
}
