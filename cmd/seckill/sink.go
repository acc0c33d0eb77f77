package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"seckill/internal/api"
	"seckill/internal/sink"
)

func (p *program) sinkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Look after the sinks to which events are sent",
		Long: `Sinks are the receivers of the engine's events, as the configuration lists them
under "sinks".
` + saleNote + `

Give --config as for serve, or SECKILL_CONFIG in the environment. In scripts,
give --yes to the commands that ask.`,
		Example: `  seckill sink list
  seckill sink log shop --status failed
  seckill sink test shop
  seckill sink retry shop
  seckill sink skip shop 4711 --yes
  seckill sink replay shop --from 2026-11-11T20:00:00+08:00`,
		GroupID: groupSale,
	}
	cmd.AddCommand(p.sinkListCommand(), p.sinkLogCommand(), p.sinkTestCommand(), p.sinkRetryCommand(), p.sinkSkipCommand(), p.sinkReplayCommand(), p.sinkForgetCommand())
	return cmd
}

// sinkRun is the action of a sink subcommand.
type sinkRun func(ctx context.Context, client *api.Client, args []string) error

// reading completes a sink subcommand that changes nothing.
func (f *saleFlags) reading(p *program, cmd *cobra.Command, args cobra.PositionalArgs, run sinkRun) *cobra.Command {
	f.bindReading(cmd)
	cmd.Args = args
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := f.client(p, cmd)
		if err != nil {
			return err
		}
		if err := run(cmd.Context(), client, args); err != nil {
			return fmt.Errorf("sink %s: %w", cmd.Name(), err)
		}
		return nil
	}
	return cmd
}

// changing completes a sink subcommand that is written to the audit log.
func (f *saleFlags) changing(p *program, cmd *cobra.Command, args cobra.PositionalArgs, run sinkRun) *cobra.Command {
	f.bindReason(cmd)
	return f.reading(p, cmd, args, run)
}

var oneSink = oneArg("the sink's name")

func (p *program) sinkListCommand() *cobra.Command {
	var flags saleFlags
	return flags.reading(p, &cobra.Command{
		Use:   "list",
		Short: "List sinks with their lag and errors",
	}, cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		sinks, err := client.Sinks(ctx)
		if err != nil {
			return err
		}
		return p.showSinks(sinks)
	})
}

func (p *program) showSinks(sinks []api.Sink) error {
	if len(sinks) == 0 {
		fmt.Fprintln(p.out, "no sinks are configured")
		return nil
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tSTATE\tLAG\tOLDEST\tRETRYING\tWAITING\tFAILED\tTARGET\tLAST ERROR")
	for _, s := range sinks {
		oldest := time.Duration(s.LagSeconds * float64(time.Second)).Round(time.Second)
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\n", s.Name, s.Kind, strings.ReplaceAll(s.State, "_", " "), s.LagEvents, oldest,
			s.Deliveries["retrying"], s.Deliveries["waiting"], s.Deliveries["failed"], s.Target, s.LastError)
	}
	return table.Flush()
}

func (p *program) sinkLogCommand() *cobra.Command {
	var flags saleFlags
	var filter api.DeliveryFilter
	cmd := &cobra.Command{
		Use:   "log NAME",
		Short: "Show the delivery log of a sink",
		Long: `Log shows the deliveries of sink NAME by event, newest first: attempts, the
receiver's last answer, its latency, the next try and the last error. ID is the
header webhook-id. With --after it goes the other way, from that event on.`,
		Example: `  seckill sink log shop --status failed
  seckill sink log shop --order SK01M7T8X1330001YGB50B7H08F8
  seckill sink log shop --id evt_4f0c1d6a3be1b0f2a7c9d85e6f301b24`,
	}
	cmd.Flags().StringVar(&filter.Status, "status", "", "only deliveries that are `STATUS`: retrying, waiting, failed, delivered or skipped")
	cmd.Flags().StringVar(&filter.OrderNo, "order", "", "only events of the order with this `NUMBER`, such as SK…")
	cmd.Flags().StringVar(&filter.MessageID, "id", "", "only the event with this `ID`, such as evt_…")
	cmd.Flags().Int64Var(&filter.After, "after", 0, "only events above this `NUMBER`, oldest first")
	cmd.Flags().Int64Var(&filter.Before, "before", 0, "only events below this `NUMBER`")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "at most so many")
	return flags.reading(p, cmd, oneSink, func(ctx context.Context, client *api.Client, args []string) error {
		return p.sinkLog(ctx, client, args[0], filter)
	})
}

// maxLog is the most deliveries that sink log shows. A page of the API has one more,
// which tells whether there are further ones.
const maxLog = 499

func (p *program) sinkLog(ctx context.Context, client *api.Client, name string, filter api.DeliveryFilter) error {
	if filter.Limit < 1 || filter.Limit > maxLog {
		return usageErrorf("--limit must be 1 to %d", maxLog)
	}
	most := filter.Limit
	filter.Limit, filter.Newest = most+1, filter.After == 0
	deliveries, err := client.Deliveries(ctx, name, filter)
	if err != nil {
		return err
	}
	more := len(deliveries) > most
	if more {
		deliveries = deliveries[:most]
	}
	if err := p.showDeliveries(deliveries); err != nil || !more {
		return err
	}
	flag := "--before"
	if !filter.Newest {
		flag = "--after"
	}
	fmt.Fprintf(p.out, "… more: %s %d\n", flag, deliveries[most-1].EventID)
	return nil
}

func (p *program) showDeliveries(deliveries []api.Delivery) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "EVENT\tKIND\tKEY\tSTATUS\tATTEMPTS\tANSWER\tLATENCY\tLAST TRY\tNEXT TRY\tID\tERROR")
	for _, d := range deliveries {
		last, latency := d.LastAt, fmt.Sprintf("%d ms", d.LatencyMS)
		if d.Attempts == 0 {
			last, latency = api.Time{}, "-"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			d.EventID, d.Event, d.Key, d.Status, d.Attempts, d.Answer, latency, showTime(last), showTime(d.NextAt), d.MessageID, d.Error)
	}
	return table.Flush()
}

func showTime(at api.Time) string {
	if time.Time(at).IsZero() {
		return "-"
	}
	return time.Time(at).Format(time.RFC3339)
}

func (p *program) sinkTestCommand() *cobra.Command {
	var flags saleFlags
	return flags.changing(p, &cobra.Command{
		Use:   "test NAME",
		Short: "Send an echo event to a sink, and show its answer",
		Long: `Test sends one event of type seckill.echo to sink NAME and shows the answer. It
does not touch the sink's cursor. The exit code is 1 if the receiver did not take it.`,
	}, oneSink, func(ctx context.Context, client *api.Client, args []string) error {
		result, err := client.TestSink(ctx, args[0])
		if err != nil {
			return err
		}
		if !result.OK {
			return fmt.Errorf("not delivered after %d ms: %s", result.LatencyMS, result.Error)
		}
		fmt.Fprintf(p.out, "%s took the echo event: %s after %d ms\n", args[0], result.Answer, result.LatencyMS)
		return nil
	})
}

func (p *program) sinkRetryCommand() *cobra.Command {
	var flags saleFlags
	return flags.changing(p, &cobra.Command{
		Use:   "retry NAME [EVENT]",
		Short: "Try deliveries of a sink again now",
		Long: `Retry makes all failed and retrying deliveries of sink NAME due now, with fresh
attempts; with EVENT the one of that event. EVENT is a number or an id (evt_…),
as sink log shows them. It also ends a pause that the receiver has asked for.`,
		Example: `  seckill sink retry shop
  seckill sink retry shop 4711`,
	}, cobra.RangeArgs(1, 2), func(ctx context.Context, client *api.Client, args []string) error {
		if len(args) == 1 {
			n, err := client.RetrySink(ctx, args[0])
			return p.showCount(n, args[0], "due now", err)
		}
		if err := checkEvent(args[1]); err != nil {
			return err
		}
		d, err := client.RetryDelivery(ctx, args[0], args[1])
		return p.showDelivery(args[0], d, err)
	})
}

func (p *program) showDelivery(name string, d api.Delivery, err error) error {
	if err == nil {
		fmt.Fprintf(p.out, "event %d of %s at %s is %s\n", d.EventID, d.Key, name, d.Status)
	}
	return err
}

// showCount prints the result for n deliveries.
func (p *program) showCount(n int, name, done string, err error) error {
	if err == nil {
		fmt.Fprintf(p.out, "%s of %s %s\n", deliveries(n), name, done)
	}
	return err
}

func (p *program) sinkSkipCommand() *cobra.Command {
	var flags saleFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "skip NAME [EVENT]",
		Short: "Give up deliveries, so that later events of their orders go on",
		Long: `Skip gives up the failed or retrying delivery of EVENT to sink NAME, and asks
first. EVENT is a number or an id (evt_…), as sink log shows them. With --all
it gives up every failed delivery. The receiver does not get these events.`,
	}
	flags.bindYes(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "give up all failed deliveries")
	return flags.changing(p, cmd, cobra.RangeArgs(1, 2), func(ctx context.Context, client *api.Client, args []string) error {
		if all == (len(args) == 2) {
			return usageErrorf("give either EVENT or --all")
		}
		name := args[0]
		question := fmt.Sprintf("Give up all failed deliveries? %s will not get these events.", name)
		if !all {
			if err := checkEvent(args[1]); err != nil {
				return err
			}
			question = fmt.Sprintf("Give up event %s? %s will not get it.", args[1], name)
		}
		if err := p.confirm(ctx, flags.yes, question); err != nil {
			return err
		}
		if all {
			n, err := client.SkipSink(ctx, name)
			return p.showCount(n, name, "given up", err)
		}
		d, err := client.SkipDelivery(ctx, name, args[1])
		return p.showDelivery(name, d, err)
	})
}

// checkEvent reports whether a text names an event, by its number or its id.
func checkEvent(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 || sink.IsMessageID(text) {
		return nil
	}
	return usageErrorf("EVENT must be the number of an event or its id (evt_…), as sink log shows them, not %q", text)
}

// deliveries returns a number with its noun.
func deliveries(n int) string {
	if n == 1 {
		return "1 delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}

func (p *program) sinkReplayCommand() *cobra.Command {
	var flags saleFlags
	var from string
	cmd := &cobra.Command{
		Use:   "replay NAME --from TIME",
		Short: "Deliver all events since a time again",
		Long: `Replay sets the cursor of sink NAME back, so that all events since a time are
delivered again, those that were skipped as well, and asks first. Receivers know
repeated events by their ids.`,
		Example: `  seckill sink replay shop --from 2026-11-11T20:00:00+08:00
  seckill sink replay shop --from 2h --yes   # of the last two hours`,
	}
	flags.bindYes(cmd)
	cmd.Flags().StringVar(&from, "from", "", "`TIME` since which events are delivered again, or how long ago")
	return flags.changing(p, cmd, oneSink, func(ctx context.Context, client *api.Client, args []string) error {
		since, err := p.since(from)
		if err != nil {
			return err
		}
		if err := p.confirm(ctx, flags.yes, fmt.Sprintf("Deliver all events since %s to %s again?", since.Format(time.RFC3339), args[0])); err != nil {
			return err
		}
		n, err := client.ReplaySink(ctx, args[0], since)
		if err == nil {
			fmt.Fprintf(p.out, "%d events are delivered to %s again\n", n, args[0])
		}
		return err
	})
}

// since reads a time, or a duration before now.
func (p *program) since(text string) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return p.now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usageErrorf("--from must be an RFC 3339 time such as 2026-11-11T20:00:00+08:00, or a duration such as 2h")
	}
	return at, nil
}

func (p *program) sinkForgetCommand() *cobra.Command {
	var flags saleFlags
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Delete a sink that is not configured any more",
		Long: `Forget deletes the cursor and the delivery log of sink NAME, and asks first. It is
refused while the sink is configured: remove it from the configuration of all
instances first. A sink of that name begins anew later.`,
	}
	flags.bindYes(cmd)
	return flags.changing(p, cmd, oneSink, func(ctx context.Context, client *api.Client, args []string) error {
		sinks, err := client.Sinks(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sinks, func(s api.Sink) bool { return s.Name == args[0] && s.Configured }) {
			return errors.New("it is configured: remove it from the configuration of all instances first")
		}
		if err := p.confirm(ctx, flags.yes, fmt.Sprintf("Delete the cursor and the delivery log of %s?", args[0])); err != nil {
			return err
		}
		n, err := client.ForgetSink(ctx, args[0])
		if err == nil {
			fmt.Fprintf(p.out, "%s forgotten, with %s\n", args[0], deliveries(n))
		}
		return err
	})
}
