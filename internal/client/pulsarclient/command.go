package pulsarclient

import "google.golang.org/protobuf/encoding/protowire"

// What the client says. Functions return whole frames.

const (
	clientVersion = "seckill"
	// protocolVersion is v19: acknowledgements are answered, and brokers do not ask
	// clients to move to another cluster.
	protocolVersion = 19
	tokenMethod     = "token"
)

func numberOf(k kind) protowire.Number { return protowire.Number(k) }

// sayConnect signs in. broker is the address that a proxy has to connect to; ""
// without a proxy.
func sayConnect(token, broker string) []byte {
	f := fields(nil).text(1, clientVersion)
	if token != "" {
		f = f.text(3, token)
	}
	f = f.number(4, protocolVersion)
	if token != "" {
		f = f.text(5, tokenMethod)
	}
	if broker != "" {
		f = f.text(6, broker)
	}
	return newFrame(kindConnect, f.bytes(10, fields(nil).flag(1, true)), 0) // it answers challenges
}

func sayToken(token string) []byte {
	data := fields(nil).text(1, tokenMethod).text(2, token)
	return newFrame(kindAuthResponse, fields(nil).text(1, clientVersion).bytes(2, data).number(3, protocolVersion), 0)
}

func sayPing() []byte { return newFrame(kindPing, nil, 0) }
func sayPong() []byte { return newFrame(kindPong, nil, 0) }

func sayPartitions(topic string, request uint64) []byte {
	return newFrame(kindPartitions, fields(nil).text(1, topic).number(2, request), 0)
}

func sayLookup(topic string, request uint64, authoritative bool) []byte {
	return newFrame(kindLookup, fields(nil).text(1, topic).number(2, request).flag(3, authoritative), 0)
}

// sayProducer has the broker choose the producer's name.
func sayProducer(topic string, producer, request uint64) []byte {
	return newFrame(kindProducer, fields(nil).text(1, topic).number(2, producer).number(3, request).flag(9, false), 0)
}

func sayCloseProducer(producer, request uint64) []byte {
	return newFrame(kindCloseProducer, fields(nil).number(1, producer).number(2, request), 0)
}

func sayCloseConsumer(consumer, request uint64) []byte {
	return newFrame(kindCloseConsumer, fields(nil).number(1, consumer).number(2, request), 0)
}

const (
	// keyShared is the type of all subscriptions: messages of one key go to one
	// consumer at a time. Messages are delayed by this type and by "shared", whose
	// delivery stops under a crowd of hostile messages (seen with 4.0.1).
	keyShared = 3
	earliest  = 1
)

// saySubscribe makes a durable subscription from the earliest message on.
func saySubscribe(topic, name string, consumer, request uint64) []byte {
	f := fields(nil).text(1, topic).text(2, name).number(3, keyShared).number(4, consumer).number(5, request).number(13, earliest)
	// Keys are split by the broker. Nobody relies on the order: with it, a consumer
	// that joins would wait for what slow ones have in hand.
	f = f.bytes(17, fields(nil).number(1, 0).flag(4, true))
	return newFrame(kindSubscribe, f, 0)
}

func sayFlow(consumer uint64, permits uint32) []byte {
	return newFrame(kindFlow, fields(nil).number(1, consumer).number(2, uint64(permits)), 0)
}

// sayAck acknowledges single messages. A request of 0 is not answered.
func sayAck(consumer, request uint64, ids []MessageID) []byte {
	f := fields(nil).number(1, consumer).number(2, 0)
	for _, id := range ids {
		f = f.bytes(3, id.encoded())
	}
	if request != 0 {
		f = f.number(8, request)
	}
	return newFrame(kindAck, f, 0)
}
