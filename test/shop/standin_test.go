package shop

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/internal/wire"
)

// engineHasSinks says who sends the webhooks: the engine by its configuration
// `sinks:`, or, while the engine cannot, a stand-in that reads the event feed.
// Set it to true and delete the rest of this file once the engine has sinks.
const engineHasSinks = false

const standInWithin = 2 * time.Second // for each attempt

// standIn sends each event of an order to the shop, in order, until it is
// answered with 204.
func standIn(t *testing.T, m *market) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		client := &http.Client{Timeout: standInWithin}
		defer client.CloseIdleConnections()
		for after := int64(0); ctx.Err() == nil; {
			_ = until(ctx, func() error {
				events, next, err := m.engine.Operator().Events(ctx, after)
				if err != nil {
					return err
				}
				for _, event := range events {
					if !strings.HasPrefix(string(event.Event), "order.") {
						continue
					}
					_ = until(ctx, func() error { return deliver(ctx, client, "http://"+m.toShop.Addr()+"/webhooks/seckill", event) })
				}
				if after = next; len(events) == 0 {
					return fmt.Errorf("no events after %d", after)
				}
				return nil
			})
		}
	}()
}

// deliver sends one event once.
func deliver(ctx context.Context, client *http.Client, url string, event wire.Event) error {
	text, err := json.Marshal(event)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": strconv.FormatInt(event.ID, 10), "source": "/stand-in", "type": "seckill." + event.Event,
		"time": event.At, "subject": event.OrderNo, "data": json.RawMessage(text),
	})
	if err != nil {
		return err
	}
	id, timestamp := "stand-in-"+strconv.FormatInt(event.ID, 10), strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, webhookKey)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", timestamp)
	req.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("webhook %s is answered with %d", id, res.StatusCode)
	}
	return nil
}
