package pulsarclient

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// answer is a command of the broker, decoded. It has the fields of all kinds of
// commands that the client needs.
type answer struct {
	kind      kind
	request   uint64
	owner     uint64 // number of a producer or a consumer
	sequence  uint64
	id        MessageID
	name      string // name of a producer
	size      int    // size of the largest message
	count     uint32 // number of partitions
	url       string
	urlTLS    string
	outcome   uint64 // outcome of a lookup
	authority bool
	proxied   bool
	failed    bool
	code      code
	text      string
}

// The outcomes of a lookup.
const (
	lookupRedirect = 0
	lookupConnect  = 1
	lookupFailed   = 2
)

// err returns the broker's refusal, or nil.
func (a *answer) err() error {
	if !a.failed {
		return nil
	}
	return serverError{a.code, a.text}
}

// reader reads one field of a command.
type reader func(*answer, field)

// readers has, for each kind of command, the readers of the fields that the
// client needs, by field number. Other fields and kinds are ignored.
var readers = map[kind]map[protowire.Number]reader{
	kindConnected:       {3: readSize},
	kindSendReceipt:     {1: readOwner, 2: readSequence},
	kindSendError:       {1: readOwner, 2: readSequence, 3: readCode, 4: readText},
	kindSuccess:         {1: readRequest},
	kindError:           {1: readRequest, 2: readCode, 3: readText},
	kindCloseProducer:   {1: readOwner},
	kindCloseConsumer:   {1: readOwner},
	kindProducerSuccess: {1: readRequest, 2: readName},
	kindPartitionsReply: {1: readCount, 2: readRequest, 3: readFailed, 4: readCode, 5: readText},
	kindLookupReply: {
		1: readURL, 2: readURLTLS, 3: readOutcome, 4: readRequest, 5: readAuthority, 6: readCode, 7: readText, 8: readProxied,
	},
	kindAckResponse: {4: readCode, 5: readText, 6: readRequest},
}

func readRequest(a *answer, f field)   { a.request = f.number }
func readOwner(a *answer, f field)     { a.owner = f.number }
func readSequence(a *answer, f field)  { a.sequence = f.number }
func readName(a *answer, f field)      { a.name = string(f.bytes) }
func readSize(a *answer, f field)      { a.size = int(int32(f.number)) }
func readCount(a *answer, f field)     { a.count = uint32(f.number) }
func readURL(a *answer, f field)       { a.url = string(f.bytes) }
func readURLTLS(a *answer, f field)    { a.urlTLS = string(f.bytes) }
func readAuthority(a *answer, f field) { a.authority = f.number != 0 }
func readProxied(a *answer, f field)   { a.proxied = f.number != 0 }
func readFailed(a *answer, f field)    { a.failed = a.failed || f.number != 0 }
func readCode(a *answer, f field)      { a.failed, a.code = true, code(f.number) }
func readText(a *answer, f field)      { a.text = string(f.bytes) }

func readOutcome(a *answer, f field) {
	a.outcome = f.number
	a.failed = a.failed || f.number == lookupFailed
}

// readAnswer decodes a command.
func readAnswer(command []byte) (answer, error) {
	var a answer
	var content []byte
	err := eachField(command, func(f field) {
		switch {
		case f.at == 1:
			a.kind = kind(f.number)
		case f.at == numberOf(a.kind):
			content = f.bytes
		}
	})
	if err != nil {
		return a, fmt.Errorf("read a command: %w", err)
	}
	if a.kind == kindMessage {
		return a, readMessageCommand(&a, content)
	}
	known := readers[a.kind]
	if known == nil {
		return a, nil
	}
	err = eachField(content, func(f field) {
		if read := known[f.at]; read != nil {
			read(&a, f)
		}
	})
	if err != nil {
		return a, fmt.Errorf("read a command of type %d: %w", a.kind, err)
	}
	return a, nil
}

// readMessageCommand decodes the most frequent command.
func readMessageCommand(a *answer, content []byte) error {
	var id []byte
	err := eachField(content, func(f field) {
		switch f.at {
		case 1:
			a.owner = f.number
		case 2:
			id = f.bytes
		}
	})
	if err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	err = eachField(id, func(f field) {
		switch f.at {
		case 1:
			a.id.Ledger = f.number
		case 2:
			a.id.Entry = f.number
		}
	})
	if err != nil {
		return fmt.Errorf("read a message's id: %w", err)
	}
	return nil
}
