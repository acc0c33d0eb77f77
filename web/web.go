// Package web holds the pages that the engine serves, embedded as they are:
// plain HTML, CSS and ES modules, with no build step.
package web

import (
	"embed"
	"io/fs"
)

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
