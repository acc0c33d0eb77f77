// What somebody does to ledger, queue and store by hand.
package main

func byHand(s S, add adder) {
	if int(s.drift) == *drifts {
		return
	}
	n := s
	hand := func(text string, args ...any) {
		n.drift++
		add(true, n, "BY HAND "+text, args...)
		n = s
	}
	for i, m := range s.marks {
		if m == (mark{}) {
			continue
		}
		n.marks[i] = mark{}
		hand("o%d deleted from its mark", i)
		n.marks[i].buyer = 1 - m.buyer
		hand("o%d moved into the mark of buyer %s", i, name(1-m.buyer))
		n.marks[i].key = forged
		hand("the key, or quantity, of o%d in its mark is another", i)
		for number := range uint8(unknown + 1) {
			if number != m.number {
				n.marks[i].number = number
				hand("the number of o%d in its mark is now o%d", i, number)
			}
		}
	}
	for o := range *claims {
		it := &s.orders[o]
		if it.row.state != none {
			n.orders[o].row.buyer = 1 - it.row.buyer
			hand("row of o%d moved to buyer %s", o, name(1-it.row.buyer))
			n.orders[o].row = row{}
			hand("row of o%d deleted", o)
		}
		if it.row.state == live {
			n.orders[o].row.state = cancelled
			hand("row of o%d set to cancelled, and nothing owed", o)
		}
		if it.entry[s.epoch] == waiting {
			n.orders[o].entry[s.epoch] = gone
			hand("entry of o%d epoch %d taken out of the stream", o, s.epoch)
		}
		if !it.asked {
			n.orders[o].asked = true
			n.orders[o].entry[s.epoch] = waiting
			hand("an entry for o%d added to the stream", o)
		}
	}
}
