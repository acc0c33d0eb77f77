package pulsarlink

import "fmt"

// answer is what a broker says: the fields that the client needs of every kind
// of command.
type answer struct {
	kind      kind
	request   uint64
	owner     uint64 // a producer or a consumer
	sequence  uint64
	id        MessageID
	name      string // of a producer
	size      int    // the largest message
	count     uint32 // of partitions
	url       string
	urlTLS    string
	outcome   uint64 // of a lookup
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

// err is the broker's refusal; nil if it did not refuse.
func (a *answer) err() error {
	if !a.failed {
		return nil
	}
	return serverError{a.code, a.text}
}

func (a *answer) fail(number uint64) { a.failed, a.code = true, code(number) }

// readers tell the place of a field for each kind of command. Others are of no
// use to the client.
var readers = map[kind]func(*answer, field){
	kindConnected: func(a *answer, f field) {
		if f.at == 3 {
			a.size = int(int32(f.number))
		}
	},
	kindSendReceipt: func(a *answer, f field) {
		switch f.at {
		case 1:
			a.owner = f.number
		case 2:
			a.sequence = f.number
		}
	},
	kindSendError: func(a *answer, f field) {
		switch f.at {
		case 1:
			a.owner = f.number
		case 2:
			a.sequence = f.number
		case 3:
			a.fail(f.number)
		case 4:
			a.text = string(f.bytes)
		}
	},
	kindSuccess: func(a *answer, f field) {
		if f.at == 1 {
			a.request = f.number
		}
	},
	kindError: func(a *answer, f field) {
		switch f.at {
		case 1:
			a.request = f.number
		case 2:
			a.fail(f.number)
		case 3:
			a.text = string(f.bytes)
		}
	},
	kindCloseProducer: readClose,
	kindCloseConsumer: readClose,
	kindProducerSuccess: func(a *answer, f field) {
		switch f.at {
		case 1:
			a.request = f.number
		case 2:
			a.name = string(f.bytes)
		}
	},
	kindPartitionsTold: func(a *answer, f field) {
		switch f.at {
		case 1:
			a.count = uint32(f.number)
		case 2:
			a.request = f.number
		case 3:
			a.failed = a.failed || f.number != 0
		case 4:
			a.fail(f.number)
		case 5:
			a.text = string(f.bytes)
		}
	},
	kindLookupTold: readLookup,
	kindAckResponse: func(a *answer, f field) {
		switch f.at {
		case 4:
			a.fail(f.number)
		case 5:
			a.text = string(f.bytes)
		case 6:
			a.request = f.number
		}
	},
}

func readClose(a *answer, f field) {
	if f.at == 1 {
		a.owner = f.number
	}
}

func readLookup(a *answer, f field) {
	switch f.at {
	case 1:
		a.url = string(f.bytes)
	case 2:
		a.urlTLS = string(f.bytes)
	case 3:
		a.outcome = f.number
		a.failed = a.failed || f.number == lookupFailed
	case 4:
		a.request = f.number
	case 5:
		a.authority = f.number != 0
	case 6:
		a.fail(f.number)
	case 7:
		a.text = string(f.bytes)
	case 8:
		a.proxied = f.number != 0
	}
}

// readAnswer decodes a command.
func readAnswer(command []byte) (answer, error) {
	var a answer
	var content []byte
	err := each(command, func(f field) {
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
	read := readers[a.kind]
	if read == nil {
		return a, nil
	}
	if err := each(content, func(f field) { read(&a, f) }); err != nil {
		return a, fmt.Errorf("read a command of type %d: %w", a.kind, err)
	}
	return a, nil
}

// readMessageCommand is for the one command that comes often.
func readMessageCommand(a *answer, content []byte) error {
	var id []byte
	err := each(content, func(f field) {
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
	err = each(id, func(f field) {
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
