package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"seckill/internal/shopapi"
	"seckill/web"
)

// headersFile is the name of the file from which static hosts read headers.
const headersFile = "_headers"

func (p *program) exportCommand() *cobra.Command {
	var from settings
	var api string
	var yes bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the shop's static pages to a directory, for a CDN",
		Long: `Export writes the pages that are built into this program to DIR, which is made if
it does not exist. All files but index.html lie in a folder named by their content:
caches may keep them for good, while index.html is to be asked about each time. The
file _headers says so in the form that many static hosts read; for others it says
what to set.

With --api the page, wherever it is served, talks to the engine at URL; there set
shop.cors_origins to the page's origin, and page.url to its address. Without it
the page talks to the host that it came from. Pictures are let in from
page.image_hosts.

Into a DIR that is not empty it writes only with --yes. Files of versions before
stay: a page that somebody still has open may ask for them.`,
		Example: `  seckill export ./public
  seckill export ./public --api https://api.shop.example --set page.image_hosts=img.shop.example
  seckill export ./public --api https://api.shop.example --yes`,
		Args:    oneArg("the DIR to write to"),
		GroupID: groupTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			origin, err := originOf(api)
			if err != nil {
				return err
			}
			cfg, err := from.load(p, cmd)
			if err != nil {
				return err
			}
			policy := shopapi.Policy(shopapi.Sources{API: origin, ImageHosts: cfg.Page.ImageHosts})
			files, err := shopapi.BuildPage(web.Shop(), shopapi.PageOptions{API: strings.TrimRight(api, "/"), Policy: policy})
			if err != nil {
				return fmt.Errorf("export: %w", err)
			}
			files = append([]shopapi.PageFile{{Name: headersFile, Body: headers(files, policy)}}, files...)
			if err := checkTarget(args[0], yes); err != nil {
				return err
			}
			return p.writeSite(args[0], files)
		},
	}
	from.bind(cmd)
	cmd.Flags().StringVar(&api, "api", "", "`URL` of the engine, if the page is served from elsewhere")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "write into a directory that is not empty")
	return cmd
}

// apiPattern matches the API's address. Its origin becomes part of the page's
// Content-Security-Policy, so it must not contain a comma or a semicolon.
var apiPattern = regexp.MustCompile(`^(https?://(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?)(?:/[A-Za-z0-9._~/-]*)?$`)

// originOf returns the origin of the API's address, or "" for no address.
func originOf(api string) (string, error) {
	if api == "" {
		return "", nil
	}
	parts := apiPattern.FindStringSubmatch(api)
	if parts == nil {
		return "", usageErrorf("--api must be an address such as https://api.shop.example or https://api.shop.example:8443/shop, not %q", api)
	}
	return parts[1], nil
}

// checkTarget refuses a directory that is not empty: it probably has another site.
func checkTarget(dir string, yes bool) error {
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0 && !yes:
		return fmt.Errorf("export: %s is not empty; add --yes to write into it", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// headers returns the response headers of the files, in the form of static hosts.
func headers(files []shopapi.PageFile, policy string) []byte {
	var text strings.Builder
	text.WriteString("/*\n")
	for _, header := range shopapi.Headers {
		fmt.Fprintf(&text, "  %s: %s\n", header[0], header[1])
	}
	for _, path := range []string{"/", "/" + shopapi.Index} {
		fmt.Fprintf(&text, "%s\n  Content-Security-Policy: %s\n  Cache-Control: %s\n", path, policy, shopapi.AskFirst)
	}
	for _, f := range files {
		if f.Name != shopapi.Index {
			fmt.Fprintf(&text, "/%s\n  Cache-Control: %s\n", f.Name, f.CacheControl)
		}
	}
	return []byte(text.String())
}

// writeSite writes the files in order, the index last. So an index always names
// files that exist.
func (p *program) writeSite(dir string, files []shopapi.PageFile) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	root, err := os.OpenRoot(dir) // no link can lead outside of it
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer root.Close()
	for _, f := range files {
		if err := writeWhole(root, filepath.FromSlash(f.Name), f.Body); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		fmt.Fprintf(p.out, "%8d  %s\n", len(f.Body), filepath.Join(dir, filepath.FromSlash(f.Name)))
	}
	fmt.Fprintf(p.out, "%d files of the page are in %s\n", len(files), dir)
	return nil
}

// writeWhole writes a file so that readers see all of it or nothing. It replaces an
// existing file or link, it does not write through it.
func writeWhole(root *os.Root, name string, body []byte) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	fresh := name + ".new"
	if err := root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return root.Rename(fresh, name)
}
