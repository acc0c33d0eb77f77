package shopapi

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestNewHTTP_NamesEveryField: a default of the library is either chosen or a
// surprise. One of them (multipart bodies are parsed) was a hole.
func TestNewHTTP_NamesEveryField(t *testing.T) {
	source, err := os.ReadFile("library.go")
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[fasthttp.Server]().Fields() {
		if field.IsExported() && !strings.Contains(string(source), "\t\t"+field.Name+":") {
			t.Errorf("library.go does not decide fasthttp.Server.%s", field.Name)
		}
	}
}
