package shopapi_test

import (
	"crypto/sha512"
	"encoding/base64"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"seckill/internal/shopapi"
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

func buildOf(t *testing.T, change map[string]string, opt shopapi.PageOptions) map[string]string {
	t.Helper()
	files, err := shopapi.BuildPage(page(change), opt)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range files {
		all[f.Name] = string(f.Body)
	}
	return all
}

func TestBuildPage_ProductPicturesKeepTheirNames(t *testing.T) {
	files := buildOf(t, map[string]string{"art/phone.svg": "<svg/>"}, shopapi.PageOptions{})
	if files["art/phone.svg"] != "<svg/>" {
		t.Errorf("the picture is not where products name it: %v", slices.Sorted(maps.Keys(files)))
	}
}

// folderOf is the one folder that every file but the index and pictures of
// products lies in.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	var folder string
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		switch {
		case name == shopapi.Index || first == "art":
		case !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(first) || folder != "" && folder != first:
			t.Fatalf("%s is not in the folder %q", name, folder)
		default:
			folder = first
		}
	}
	return folder
}

func TestBuildPage_FilesAreInTheVersionFolder(t *testing.T) {
	files, before := buildOf(t, nil, shopapi.PageOptions{}), page(nil)
	folder := folderOf(t, files)
	for name, file := range before {
		if got := files[folder+"/"+name]; name != shopapi.Index && got != string(file.Data) {
			t.Errorf("%s is %q, want %q", name, got, file.Data)
		}
	}
	if len(files) != len(before) {
		t.Errorf("%d files came of %d", len(files), len(before))
	}
	main := folder + "/js/main.js"
	sum := sha512.Sum384([]byte(files[main]))
	for _, want := range []string{
		`src="` + main + `" integrity="sha384-` + base64.StdEncoding.EncodeToString(sum[:]) + `"`,
		`href="` + folder + `/shop.css" integrity="sha384-`, `href="` + folder + `/icon.svg">`, `href="#/"`,
	} {
		if !strings.Contains(files[shopapi.Index], want) {
			t.Errorf("the index has no %s:\n%s", want, files[shopapi.Index])
		}
	}
}

// What caches keep under a name is that name's for good.
func TestBuildPage_AnyChangeRenamesTheFolder(t *testing.T) {
	before := folderOf(t, buildOf(t, nil, shopapi.PageOptions{}))
	for name := range page(nil) {
		after := folderOf(t, buildOf(t, map[string]string{name: index + " "}, shopapi.PageOptions{}))
		if (after != before) != (name != shopapi.Index) {
			t.Errorf("%s has changed: the folder is %s, was %s", name, after, before)
		}
	}
	if after := folderOf(t, buildOf(t, map[string]string{"art/phone.svg": "<svg/>"}, shopapi.PageOptions{})); after != before {
		t.Error("a picture of a product has moved the folder")
	}
}

func TestBuildPage_ContainsTheAPIOrigin(t *testing.T) {
	files := buildOf(t, nil, shopapi.PageOptions{API: `https://api.example/?a="&b`, Policy: "default-src 'none'; frame-ancestors 'none'"})
	for _, want := range []string{
		`<meta name="seckill-api" content="https://api.example/?a=&#34;&amp;b">`,
		`<head>` + "\n  " + `<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;">`,
	} {
		if !strings.Contains(files["index.html"], want) {
			t.Errorf("no %s in\n%s", want, files["index.html"])
		}
	}
}

func TestBuildPage_RefusesBrokenPage(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]string
		opt    shopapi.PageOptions
	}{
		"no place for the API": {map[string]string{"index.html": "<head></head>"}, shopapi.PageOptions{API: "https://api.example"}},
	} {
		if _, err := shopapi.BuildPage(page(c.change), c.opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := shopapi.BuildPage(fstest.MapFS{}, shopapi.PageOptions{}); err == nil {
		t.Error("no index: no error")
	}
}

// TestBuildPage_BuildsTheShop holds the real page: its files name each other relative to
// themselves, and the index names all of its own in the folder.
func TestBuildPage_BuildsTheShop(t *testing.T) {
	files := make(map[string]string)
	built, err := shopapi.BuildPage(web.Shop(), shopapi.PageOptions{API: "https://api.example"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range built {
		files[f.Name] = string(f.Body)
	}
	folder := folderOf(t, files)
	for _, named := range regexp.MustCompile(`(?:href|src)="([\w/.-]+\.\w+)"`).FindAllStringSubmatch(files[shopapi.Index], -1) {
		if _, found := files[named[1]]; !found || !strings.HasPrefix(named[1], folder+"/") {
			t.Errorf("the index names %s", named[1])
		}
	}
	imported := regexp.MustCompile("(['\"`])([\\w/.-]+\\.(?:js|css|svg))['\"`]")
	for name, body := range files {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, named := range imported.FindAllStringSubmatch(body, -1) {
			if _, found := files[path.Join(path.Dir(name), named[2])]; !found || !strings.HasPrefix(named[2], ".") {
				t.Errorf("%s names %s", name, named[2])
			}
		}
	}
	if strings.Contains(files[folder+"/shop.css"], "url(") {
		t.Error("the style names a file: see that it is found")
	}
}

func TestPolicy_NamesConfiguredOrigins(t *testing.T) {
	for _, c := range []struct {
		sources shopapi.Sources
		wants   []string
	}{
		{shopapi.Sources{}, []string{"default-src 'none'; ", "script-src 'self'; ", "img-src 'self' data:; ", "connect-src 'self'; ", "frame-ancestors 'none'"}},
		{shopapi.Sources{API: "https://api.example", ImageHosts: []string{"img.example", "*.cdn.example"}},
			[]string{"img-src 'self' data: https://api.example img.example *.cdn.example; ", "connect-src 'self' https://api.example; "}},
	} {
		policy := shopapi.Policy(c.sources)
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
