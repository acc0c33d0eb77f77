// Package web holds the pages that the engine serves, embedded as they are:
// plain HTML, CSS and ES modules, with no build step.
package web

import (
	"embed"
	"io/fs"
)

// ShopPolicy is the Content-Security-Policy under which the shopper's page
// works and is tested: nothing inline, no code and no style from elsewhere.
// Pictures of products come from wherever the shop has them, and that of a
// challenge inside its answer; the proof of work runs in a worker of our own.
const ShopPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https: http:; connect-src 'self'; " +
	"worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

//go:embed shop
var files embed.FS

// Shop is the shopper's page, rooted at the folder that holds index.html.
func Shop() fs.FS {
	shop, err := fs.Sub(files, "shop")
	if err != nil { // only for a malformed path, and this one is constant
		panic(err)
	}
	return shop
}
