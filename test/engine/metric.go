package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

// Metric is one value of /metrics. The name includes the labels, as in the text
// of /metrics. A missing metric is 0.
func (e *Engine) Metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.AdminURL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := e.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("metrics answer %d", res.StatusCode)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(body)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
