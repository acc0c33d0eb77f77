// Package apitest holds both HTTP APIs to their description. A test sends its
// traffic through a Spec; what openapi.yaml does not say is a failure, and
// what the tests never tried can be listed. Only tests import it.
package apitest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"seckill"
)

// Spec is openapi.yaml, and a record of what was tried of it. It is safe for
// concurrent use.
type Spec struct {
	doc    *openapi3.T
	router routers.Router

	mu   sync.Mutex
	seen map[exchange]bool
}

// exchange is an operation and a status that it answered.
type exchange struct {
	operation string
	status    int
}

// Load reads and validates the description, its examples included.
func Load() (*Spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(seckill.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("load openapi.yaml: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate openapi.yaml: %w", err)
	}
	// Tests listen anywhere: an operation is known by its path alone.
	doc.Servers = nil
	for _, item := range doc.Paths.Map() {
		item.Servers = nil
		for _, operation := range item.Operations() {
			closeAnswers(operation)
		}
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("route openapi.yaml: %w", err)
	}
	return &Spec{doc: doc, router: router, seen: map[exchange]bool{}}, nil
}

// closeAnswers makes undescribed members of answers a mistake. For clients the
// description leaves answers open, so that they may grow; here the growth must
// be described first.
func closeAnswers(operation *openapi3.Operation) {
	for _, response := range operation.Responses.Map() {
		for _, media := range response.Value.Content {
			media.Schema = closed(media.Schema)
		}
	}
}

// closed is a copy of a schema, its allOf merged into one object, in which
// objects have no members but the described ones.
func closed(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	if ref == nil || ref.Value == nil {
		return ref
	}
	schema := *ref.Value
	schema.Properties = openapi3.Schemas{}
	maps.Copy(schema.Properties, ref.Value.Properties)
	for _, part := range schema.AllOf {
		merged := closed(part).Value
		maps.Copy(schema.Properties, merged.Properties)
		schema.Required = append(slices.Clone(schema.Required), merged.Required...)
		schema.Type = &openapi3.Types{openapi3.TypeObject}
	}
	schema.AllOf = nil
	for name, property := range schema.Properties {
		schema.Properties[name] = closed(property)
	}
	schema.Items = closed(schema.Items)
	additional := schema.AdditionalProperties
	if len(schema.Properties) > 0 && additional.Has == nil && additional.Schema == nil {
		no := false
		schema.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
	}
	return &openapi3.SchemaRef{Value: &schema}
}

// Untried lists the operations that never answered with success, as "GET
// /path"; prefix narrows by path ("" for all).
func (s *Spec) Untried(prefix string) []string {
	return s.missing(prefix, func(status int) bool { return status < http.StatusBadRequest })
}

// Unseen lists the described answers that never came, as "GET /path 409".
func (s *Spec) Unseen(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unseen []string
	s.each(prefix, func(name string, operation *openapi3.Operation) {
		for code := range operation.Responses.Map() {
			var status int
			if _, err := fmt.Sscan(code, &status); err == nil && !s.seen[exchange{name, status}] {
				unseen = append(unseen, name+" "+code)
			}
		}
	})
	slices.Sort(unseen)
	return unseen
}

func (s *Spec) missing(prefix string, good func(status int) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tried := map[string]bool{}
	for seen := range s.seen {
		if good(seen.status) {
			tried[seen.operation] = true
		}
	}
	var missing []string
	s.each(prefix, func(name string, _ *openapi3.Operation) {
		if !tried[name] {
			missing = append(missing, name)
		}
	})
	slices.Sort(missing)
	return missing
}

func (s *Spec) each(prefix string, visit func(name string, operation *openapi3.Operation)) {
	for path, item := range s.doc.Paths.Map() {
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		for method, operation := range item.Operations() {
			visit(method+" "+path, operation)
		}
	}
}

func (s *Spec) note(operation string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[exchange{operation, status}] = true
}
