package pulsarclient

import "google.golang.org/protobuf/encoding/protowire"

// The commands of the client. Each function returns a complete frame.

const (
	clientVersion = "seckill"
	// protocolVersion is v19: brokers answer acknowledgements, and do not ask
	// clients to move to another cluster.
	protocolVersion = 19
	tokenMethod     = "token"
)

func numberOf(k kind) protowire.Number { return protowire.Number(k) }

// encodeConnect signs in. broker is the address to which a proxy has to connect,
// or "" without a proxy.
func encodeConnect(token, broker string) []byte {
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
	return newFrame(kindConnect, f.bytes(10, fields(nil).flag(1, true)), 0) // flag: it answers authentication challenges
}

func encodeToken(token string) []byte {
	data := fields(nil).text(1, tokenMethod).text(2, token)
	return newFrame(kindAuthResponse, fields(nil).text(1, clientVersion).bytes(2, data).number(3, protocolVersion), 0)
}

func encodePing() []byte { return newFrame(kindPing, nil, 0) }
func encodePong() []byte { return newFrame(kindPong, nil, 0) }

func encodePartitions(topic string, request uint64) []byte {
	return newFrame(kindPartitions, fields(nil).text(1, topic).number(2, request), 0)
}

func encodeLookup(topic string, request uint64, authoritative bool) []byte {
	return newFrame(kindLookup, fields(nil).text(1, topic).number(2, request).flag(3, authoritative), 0)
}

// encodeProducer creates a producer. The broker chooses its name.
func encodeProducer(topic string, producer, request uint64) []byte {
	return newFrame(kindProducer, fields(nil).text(1, topic).number(2, producer).number(3, request).flag(9, false), 0)
}

func encodeCloseProducer(producer, request uint64) []byte {
	return newFrame(kindCloseProducer, fields(nil).number(1, producer).number(2, request), 0)
}

func encodeCloseConsumer(consumer, request uint64) []byte {
	return newFrame(kindCloseConsumer, fields(nil).number(1, consumer).number(2, request), 0)
}

const (
	// keyShared is the type of all subscriptions: messages of one key go to one
	// consumer at a time. Only this type and "shared" have delayed messages.
	// The delivery of "shared" stops under many hostile messages (seen with
	// 4.0.1).
	keyShared = 3
	earliest  = 1
)

// encodeSubscribe creates a durable subscription that starts with the earliest
// message.
func encodeSubscribe(topic, name string, consumer, request uint64) []byte {
	f := fields(nil).text(1, topic).text(2, name).number(3, keyShared).number(4, consumer).number(5, request).number(13, earliest)
	// The broker splits the keys. Out-of-order delivery is allowed, because no
	// code relies on the order. Otherwise a new consumer would wait for
	// messages that slow consumers hold.
	f = f.bytes(17, fields(nil).number(1, 0).flag(4, true))
	return newFrame(kindSubscribe, f, 0)
}

func encodeFlow(consumer uint64, permits uint32) []byte {
	return newFrame(kindFlow, fields(nil).number(1, consumer).number(2, uint64(permits)), 0)
}

// encodeAck acknowledges single messages. A request number of 0 gets no answer.
func encodeAck(consumer, request uint64, ids []MessageID) []byte {
	f := fields(nil).number(1, consumer).number(2, 0)
	for _, id := range ids {
		f = f.bytes(3, id.encoded())
	}
	if request != 0 {
		f = f.number(8, request)
	}
	return newFrame(kindAck, f, 0)
}
