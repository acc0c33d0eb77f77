package ledgerredis

import (
	"testing"

	"seckill"
	"seckill/internal/queue/queuetest"
)

func TestTheQueueConforms(t *testing.T) {
	r := newQueueRig(t)
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		return queuetest.Harness{
			Queue: r.queue, SilentAfter: testSilence,
			Publish: func(_ *testing.T, entry seckill.Entry) { r.publish(entry); r.flush() },
		}
	})
}
