package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// ReverseProxy is a real HTTP proxy in front of an engine. It keeps connections
// to the engine alive and shares them among clients. In this setup the answer
// to a smuggled request can reach another client.
type ReverseProxy struct {
	Process
	// Strict and Lax are the addresses of two listeners with the same upstream.
	// The strict one has the proxy's defaults. The lax one forwards requests that
	// the proxy would refuse or buffer by default.
	Strict, Lax string
	forwarded   *regexp.Regexp // a log line of a request that reached the upstream
}

// Forwarded counts the requests that the proxy has sent to the engine, by its
// access log.
func (p *ReverseProxy) Forwarded() int { return len(p.forwarded.FindAllString(p.Log(), -1)) }

// Nginx starts an nginx in front of an upstream (host:port).
func Nginx(t testing.TB, upstream string) *ReverseProxy {
	t.Helper()
	return reverseProxy(t, "nginx", regexp.MustCompile(`(?m)^upstream=\d`), func(home place, lax string) (config string, args []string) {
		server := func(listen, more string) string {
			return "server { listen " + listen + "; " + more + " location / { proxy_pass http://engine; proxy_http_version 1.1; " +
				"proxy_set_header Connection \"\"; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_next_upstream off; } }\n"
		}
		config = nginxHead() + "http {\n" +
			"log_format counted 'upstream=$upstream_addr'; access_log /dev/stdout counted;\n" + nginxTemp +
			"upstream engine { server " + upstream + "; keepalive 4; }\n" +
			server(home.address, "") +
			server(lax, "proxy_request_buffering off; ignore_invalid_headers off; underscores_in_headers on; merge_slashes off;") + "}\n"
		return config, nginxArgs(home)
	})
}

// NginxSite starts an nginx with a site of the test's own. site returns the
// content of the http block for a listen address.
func NginxSite(t testing.TB, site func(listen string) string) *ReverseProxy {
	t.Helper()
	path := need(t, "nginx")
	home, err := newPlace("nginx", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(home.leave)
	config := nginxHead() + "http {\naccess_log off;\n" + nginxTemp + site(home.address) + "}\n"
	file := filepath.Join(home.dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &ReverseProxy{Strict: home.address}
	p.Process = Process{t, &child{
		name: "nginx " + home.address, dir: home.dir, path: path, args: append(nginxArgs(home), file),
		ready: func() error { return reachable(home.address) },
	}}
	p.manage()
	p.Start()
	return p
}

// nginxTemp keeps nginx's buffer files in its own directory.
const nginxTemp = "client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n"

// nginxHead makes nginx run as one process that the test can stop.
func nginxHead() string {
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	return "daemon off; master_process off; pid nginx.pid; error_log stderr crit;\n" + user + "events { worker_connections 1024; }\n"
}

func nginxArgs(home place) []string { return []string{"-p", home.dir, "-e", "stderr", "-c"} }

// HAProxy starts an HAProxy in front of an upstream (host:port).
func HAProxy(t testing.TB, upstream string) *ReverseProxy {
	t.Helper()
	return reverseProxy(t, "haproxy", regexp.MustCompile(`(?m) engine/one `), func(home place, lax string) (config string, args []string) {
		config = "global\n log stdout format raw local0\n maxconn 1024\n nbthread 1\n" + // several threads drop log lines
			"defaults\n mode http\n log global\n option httplog\n option forwardfor\n option http-keep-alive\n http-reuse always\n retries 0\n" +
			" timeout connect 5s\n timeout client 30s\n timeout server 30s\n" +
			"frontend strict\n bind " + home.address + "\n default_backend engine\n" +
			"frontend lax\n bind " + lax + "\n option accept-invalid-http-request\n default_backend engine\n" +
			"backend engine\n server one " + upstream + " pool-max-conn 4\n"
		return config, []string{"-db", "-f"}
	})
}

func reverseProxy(t testing.TB, program string, forwarded *regexp.Regexp, configure func(home place, lax string) (string, []string)) *ReverseProxy {
	t.Helper()
	path := need(t, program)
	home, err := newPlace(program, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(home.leave)
	second, err := newPlace(program, home.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.leave)
	config, args := configure(home, second.address)
	file := filepath.Join(home.dir, program+".conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &ReverseProxy{Strict: home.address, Lax: second.address, forwarded: forwarded}
	p.Process = Process{t, &child{
		name: program + " " + home.address, dir: home.dir, path: path, args: append(args, file),
		ready: func() error { return reachable(home.address, second.address) },
	}}
	p.manage()
	p.Start()
	return p
}

// reachable requests the upstream's health through each address.
func reachable(addresses ...string) error {
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for _, address := range addresses {
		res, err := client.Get("http://" + address + "/healthz")
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %d", address, res.StatusCode)
		}
	}
	return nil
}
