// BuildPage makes a page ready to be served. Every file but index.html is in a folder
// named after the hash of all files. So browsers and CDNs cache the files for good and
// never mix versions. Scripts and styles refer to each other by relative paths, so only
// the index contains the folder's name. The page works without a build step, too.

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

// Index is the only file with a fixed name.
const Index = "index.html"

// Values of Cache-Control.
const (
	// ForGood is for files in the folder of a version.
	ForGood = "public, max-age=31536000, immutable"
	// AskFirst is for the index: cached, but revalidated before each use.
	AskFirst = "no-cache"
)

// artFolder has the pictures of the demo's products. Products contain their URLs, so they
// keep their names.
const artFolder = "art/"

// hashChars is the length of the folder's name, in hex. 48 bits are enough to tell all
// versions apart.
const hashChars = 12

// PageFile is one file of a site.
type PageFile struct {
	Name string // without a leading slash
	Body []byte
	// CacheControl is the Cache-Control header.
	CacheControl string
}

// PageOptions configure BuildPage.
type PageOptions struct {
	// API is the engine's origin; "" if it serves the page itself.
	API string
	// Policy, if set, is also written into the index, for hosts that cannot set the
	// header. Most of it works there.
	Policy string
}

// BuildPage makes the files of a site, sorted by name, with the index last. If they are
// copied in this order, the index never refers to a missing file.
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
	bodies map[string][]byte // by the original names
	folder string            // of this version, with a trailing slash
}

// read reads the page's files and derives the folder's name from them.
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
	// tag matches tags that may contain a file name.
	tag     = regexp.MustCompile(`<(?:script|link|img)\b[^>]*>`)
	source  = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
	apiMeta = regexp.MustCompile(`(<meta name="seckill-api" content=")[^"]*(">)`)
)

// index writes the folder's name and the files' hashes into the page's tags, and the
// API's origin into the page.
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
		policy := strings.ReplaceAll(opt.Policy, frameAncestors, "") // which works only in a header
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
