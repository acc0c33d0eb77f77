package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Sinks lists the sinks to which events are sent.
func (c *Client) Sinks(ctx context.Context) ([]Sink, error) {
	var list struct {
		Sinks []Sink `json:"sinks"`
	}
	err := c.into(ctx, &list, http.MethodGet, nil, nil, "sinks")
	return list.Sinks, err
}

// TestSink sends an echo event to a sink.
func (c *Client) TestSink(ctx context.Context, name string) (SinkTest, error) {
	var result SinkTest
	err := c.into(ctx, &result, http.MethodPost, why{c.opt.Reason}, nil, "sinks", name, "test")
	return result, err
}

// RetrySink retries all failed and retrying deliveries of a sink now, and returns
// their number.
func (c *Client) RetrySink(ctx context.Context, name string) (int, error) {
	return c.onSink(ctx, name, "retry", "retried")
}

// SkipSink gives up all failed deliveries of a sink, and returns their number.
func (c *Client) SkipSink(ctx context.Context, name string) (int, error) {
	return c.onSink(ctx, name, "skip", "skipped")
}

// ForgetSink deletes a sink that is not configured any more, and returns the number
// of deliveries in its log.
func (c *Client) ForgetSink(ctx context.Context, name string) (int, error) {
	return c.onSink(ctx, name, "forget", "deliveries")
}

// onSink calls an operation on all deliveries of a sink, and returns their number,
// which is the member counted of the answer.
func (c *Client) onSink(ctx context.Context, name, verb, counted string) (int, error) {
	var result map[string]int
	err := c.into(ctx, &result, http.MethodPost, why{c.opt.Reason}, nil, "sinks", name, verb)
	return result[counted], err
}

// DeliveryFilter selects deliveries of a page of the delivery log. Zero fields
// select all.
type DeliveryFilter struct {
	Status, OrderNo, MessageID string
	After, Before              int64 // events
	Newest                     bool  // first
	Limit                      int
}

// Deliveries reads a page of the delivery log of a sink.
func (c *Client) Deliveries(ctx context.Context, name string, filter DeliveryFilter) ([]Delivery, error) {
	query := url.Values{"limit": {strconv.Itoa(filter.Limit)}}
	set := func(name, value string) {
		if value != "" && value != "0" {
			query.Set(name, value)
		}
	}
	set("status", filter.Status)
	set("order_no", filter.OrderNo)
	set("message_id", filter.MessageID)
	set("after", strconv.FormatInt(filter.After, 10))
	set("before", strconv.FormatInt(filter.Before, 10))
	if filter.Newest {
		set("order", "desc")
	}
	var page struct {
		Deliveries []Delivery `json:"deliveries"`
	}
	err := c.into(ctx, &page, http.MethodGet, nil, query, "sinks", name, "deliveries")
	return page.Deliveries, err
}

// RetryDelivery retries one delivery. event is the event's number or message id.
func (c *Client) RetryDelivery(ctx context.Context, name, event string) (Delivery, error) {
	return c.delivery(ctx, name, event, "retry")
}

// SkipDelivery gives up one delivery. event is the event's number or message id.
func (c *Client) SkipDelivery(ctx context.Context, name, event string) (Delivery, error) {
	return c.delivery(ctx, name, event, "skip")
}

func (c *Client) delivery(ctx context.Context, name, event, verb string) (Delivery, error) {
	var d Delivery
	err := c.into(ctx, &d, http.MethodPost, why{c.opt.Reason}, nil, "sinks", name, "deliveries", event, verb)
	return d, err
}

// ReplaySink delivers all events since a time again, and returns their number.
func (c *Client) ReplaySink(ctx context.Context, name string, from time.Time) (int64, error) {
	request := struct {
		From Time `json:"from"`
		why
	}{Time(from), why{c.opt.Reason}}
	var result struct {
		Events int64 `json:"events"`
	}
	err := c.into(ctx, &result, http.MethodPost, request, nil, "sinks", name, "replay")
	return result.Events, err
}
