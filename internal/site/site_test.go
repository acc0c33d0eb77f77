package site_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"seckill/internal/site"
	"seckill/web"
)

const index = `<!doctype html><html><head>
<meta name="seckill-api" content="">
<link rel="icon" href="icon.svg"><link rel="stylesheet" href="shop.css">
<link rel="modulepreload" href="js/a.js">
<script type="module" src="js/main.js"></script></head><body><a href="#/">home</a></body></html>`

func page(change map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"index.html":   index,
		"icon.svg":     "<svg/>",
		"shop.css":     `body { background: url("icon.svg") } .x { background: url(data:image/png;base64,AA) }`,
		"js/main.js":   "import { a } from './a.js';\nimport('./view/b.js');\nconst icon = 'icon.svg', none = 'nothing.svg', text = 'a.b';",
		"js/a.js":      "export const a = new Worker(new URL('./work.js', import.meta.url));",
		"js/work.js":   "postMessage(1);",
		"js/view/b.js": `export * from "../a.js";`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range change {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func buildOf(t *testing.T, change map[string]string, opt site.Options) map[string]string {
	t.Helper()
	files, err := site.Build(page(change), opt)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range files {
		all[f.Name] = string(f.Body)
	}
	return all
}

func TestPicturesOfProductsKeepTheirNames(t *testing.T) {
	files := buildOf(t, map[string]string{"art/phone.svg": "<svg/>"}, site.Options{})
	if files["art/phone.svg"] != "<svg/>" {
		t.Errorf("the picture is not where products name it: %v", slices.Sorted(maps.Keys(files)))
	}
}

// named is the one file that came of an old name.
func named(t *testing.T, files map[string]string, old string) string {
	t.Helper()
	ext := path.Ext(old)
	pattern := regexp.MustCompile("^" + regexp.QuoteMeta(strings.TrimSuffix(old, ext)) + `\.[0-9a-f]{12}` + regexp.QuoteMeta(ext) + "$")
	for name := range files {
		if pattern.MatchString(name) {
			return name
		}
	}
	t.Fatalf("nothing came of %s: %v", old, files)
	return ""
}

func TestEveryFileIsNamedByItsContentAndFound(t *testing.T) {
	files := buildOf(t, nil, site.Options{})
	main, a := named(t, files, "js/main.js"), named(t, files, "js/a.js")
	for name, wants := range map[string][]string{
		main:                            {"'./" + path.Base(a) + "'", "'./view/" + path.Base(named(t, files, "js/view/b.js")) + "'", "'" + named(t, files, "icon.svg") + "'", "'nothing.svg'", "'a.b'"},
		a:                               {"'./" + path.Base(named(t, files, "js/work.js")) + "'"},
		named(t, files, "shop.css"):     {`url("` + named(t, files, "icon.svg") + `")`, "url(data:"},
		named(t, files, "js/view/b.js"): {`"../` + path.Base(a) + `"`},
		"index.html":                    {`src="` + main + `" integrity="sha384-`, `href="#/"`, `href="` + named(t, files, "icon.svg") + `">`},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s has no %s:\n%s", name, want, files[name])
			}
		}
	}
	for name, body := range files {
		sum := sha256.Sum256([]byte(body))
		if name != site.Index && !strings.Contains(name, "."+hex.EncodeToString(sum[:])[:12]+".") {
			t.Errorf("%s is not named by its content", name)
		}
	}
	sum := sha512.Sum384([]byte(files[main]))
	if !strings.Contains(files["index.html"], `src="`+main+`" integrity="sha384-`+base64.StdEncoding.EncodeToString(sum[:])+`"`) {
		t.Error("the integrity is not that of the script")
	}
}

// TestAChangeRenamesWhatDependsOnIt, and nothing else: what caches keep under a
// name is that name's for good.
func TestAChangeRenamesWhatDependsOnIt(t *testing.T) {
	before, after := buildOf(t, nil, site.Options{}), buildOf(t, map[string]string{"js/work.js": "postMessage(2);"}, site.Options{})
	for old, renamed := range map[string]bool{"js/work.js": true, "js/a.js": true, "js/main.js": true, "js/view/b.js": true, "icon.svg": false, "shop.css": false} {
		if (named(t, before, old) != named(t, after, old)) != renamed {
			t.Errorf("%s: renamed %v", old, !renamed)
		}
	}
}

func TestThePageIsToldWhereTheAPIIs(t *testing.T) {
	files := buildOf(t, nil, site.Options{API: `https://api.example/?a="&b`, Policy: "default-src 'none'; frame-ancestors 'none'"})
	for _, want := range []string{
		`<meta name="seckill-api" content="https://api.example/?a=&#34;&amp;b">`,
		`<head>` + "\n  " + `<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;">`,
	} {
		if !strings.Contains(files["index.html"], want) {
			t.Errorf("no %s in\n%s", want, files["index.html"])
		}
	}
}

func TestABrokenPageIsNotBuilt(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]string
		opt    site.Options
	}{
		"an import of nothing": {map[string]string{"js/main.js": "import './gone.js';"}, site.Options{}},
		"a picture of nothing": {map[string]string{"shop.css": "a { background: url(gone.svg) }"}, site.Options{}},
		"imports in a circle":  {map[string]string{"js/work.js": "import './a.js';"}, site.Options{}},
		"no place for the API": {map[string]string{"index.html": "<head></head>"}, site.Options{API: "https://api.example"}},
	} {
		if _, err := site.Build(page(c.change), c.opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := site.Build(fstest.MapFS{}, site.Options{}); err == nil {
		t.Error("no index: no error")
	}
}

// TestTheShopIsBuilt holds the real page: nothing in it names an old name.
func TestTheShopIsBuilt(t *testing.T) {
	files, err := site.Build(web.Shop(), site.Options{API: "https://api.example"})
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`['"](?:\.{1,2}/|js/)[\w/-]+\.js['"]`)
	for _, f := range files {
		if left := old.FindString(string(f.Body)); left != "" {
			t.Errorf("%s still names %s", f.Name, left)
		}
	}
}

func TestThePolicyNamesWhatIsConfigured(t *testing.T) {
	for _, c := range []struct {
		sources site.Sources
		wants   []string
	}{
		{site.Sources{}, []string{"default-src 'none'; ", "script-src 'self'; ", "img-src 'self' data:; ", "connect-src 'self'; ", "frame-ancestors 'none'"}},
		{site.Sources{API: "https://api.example", ImageHosts: []string{"img.example", "*.cdn.example"}},
			[]string{"img-src 'self' data: https://api.example img.example *.cdn.example; ", "connect-src 'self' https://api.example; "}},
	} {
		policy := site.Policy(c.sources)
		for _, want := range c.wants {
			if !strings.Contains(policy, want) {
				t.Errorf("%q has no %q", policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, " * ") {
			t.Errorf("%q allows too much", policy)
		}
	}
}
