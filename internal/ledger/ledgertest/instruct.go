package ledgertest

import (
	"strings"
	"time"

	"seckill"
	"seckill/internal/ledger"
)

// instruction returns an instruction to set a state.
func instruction(state seckill.SaleState, id string) seckill.Instruction {
	return seckill.Instruction{
		ID: id, State: state, Actor: "mei", Reason: "价格 \"wrong\" <price>", At: time.Date(2026, 11, 11, 12, 0, 0, 5_000_000, time.UTC),
	}
}

// instructed gives a shard an instruction and expects that it keeps it.
func (f *fixture) instructed(shard ledger.Shard, in seckill.Instruction) {
	f.Helper()
	f.instructButKeep(shard, in, in)
}

// instructButKeep gives a shard an instruction, and expects that it keeps another one.
func (f *fixture) instructButKeep(shard ledger.Shard, in, want seckill.Instruction) {
	f.Helper()
	kept, err := f.Ledger.Instruct(f.ctx(), shard, in)
	f.check(err, "instruct")
	if !sameInstruction(kept, want) {
		f.Errorf("after %+v it keeps %+v, want %+v", in, kept, want)
	}
}

func (f *fixture) settled(shard ledger.Shard, id string) {
	f.Helper()
	f.check(f.Ledger.Settle(f.ctx(), shard, id), "settle")
}

// wantState checks the state of a shard and the instruction that it keeps.
func (f *fixture) wantState(shard ledger.Shard, state seckill.SaleState, in seckill.Instruction) {
	f.Helper()
	if got := f.read(shard); got.State != state || !sameInstruction(got.Instruction, in) {
		f.Errorf("state %s, instruction %+v, want %s, %+v", got.State, got.Instruction, state, in)
	}
}

func instructStories() []story {
	none := seckill.Instruction{}
	pause, end := instruction(seckill.SalePaused, "pause-1"), instruction(seckill.SaleEnded, "end-1")
	return []story{
		{"an instruction stops the sale at once, and is kept with all fields", func(f *fixture) {
			shard := f.sale(10, 5)
			p := f.process(shard)
			for _, step := range []struct {
				in   seckill.Instruction
				want ledger.VerdictCode
			}{{pause, ledger.VerdictPaused}, {end, ledger.VerdictEnded}} {
				f.instructed(shard, step.in)
				f.wantState(shard, step.in.State, step.in)
				p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "")), step.want)
			}
		}},
		{"a delayed SetState does not reopen a sale with an instruction", func(f *fixture) {
			shard := f.sale(10, 5)
			f.instructed(shard, pause)
			for _, state := range []seckill.SaleState{seckill.SaleOpen, seckill.SalePaused, seckill.SaleOpen} {
				f.state(shard, state)
				f.wantState(shard, seckill.SalePaused, pause)
			}
			f.state(shard, seckill.SaleEnded) // the stronger state counts
			f.wantState(shard, seckill.SaleEnded, pause)
		}},
		{"a new epoch keeps the instruction", func(f *fixture) {
			shard := f.sale(10, 5)
			f.instructed(shard, pause)
			shard.Epoch++
			f.install(shard, 3, 1)
			f.opened(shard)
			f.wantState(shard, seckill.SalePaused, pause)
			p := f.process(shard)
			p.wantVerdicts(reserve(f.claim(shard, "ann", 1, "")), ledger.VerdictPaused)
			f.settled(shard, pause.ID)
			shard.Epoch++
			f.install(shard, 3, 1)
			f.wantState(shard, seckill.SaleOpen, none)
		}},
		{"an instruction to end replaces one to pause; otherwise the first one stays", func(f *fixture) {
			shard := f.sale(10, 5)
			f.instructed(shard, pause)
			f.instructButKeep(shard, instruction(seckill.SalePaused, "pause-2"), pause)
			f.wantState(shard, seckill.SalePaused, pause)
			f.instructed(shard, end)
			f.instructButKeep(shard, instruction(seckill.SalePaused, "pause-3"), end)
			f.wantState(shard, seckill.SaleEnded, end)
		}},
		{"a repeated instruction returns the kept one, and is kept after that is settled", func(f *fixture) {
			shard, never := f.sale(10, 5), f.product()
			again := instruction(seckill.SalePaused, "pause-2")
			for _, at := range []ledger.Shard{shard, never} {
				f.instructed(at, pause)
				f.instructButKeep(at, again, pause)
				f.settled(at, pause.ID)
				f.instructed(at, again)
			}
			f.state(shard, seckill.SaleOpen)
			f.wantState(shard, seckill.SalePaused, again)
		}},
		{"Settle needs the instruction's id, and the state stays until SetState", func(f *fixture) {
			shard := f.sale(10, 5)
			f.settled(shard, pause.ID) // the shard keeps none
			f.instructed(shard, end)
			f.settled(shard, pause.ID)
			f.wantState(shard, seckill.SaleEnded, end)
			f.settled(shard, end.ID)
			f.wantState(shard, seckill.SaleEnded, none)
			f.state(shard, seckill.SaleOpen)
			f.wantState(shard, seckill.SaleOpen, none)
			f.instructed(shard, pause)
			f.wantState(shard, seckill.SalePaused, pause)
		}},
		{"a shard of any epoch, or never installed, keeps an instruction", func(f *fixture) {
			shard := f.product()
			f.settled(shard, pause.ID)
			f.instructed(shard, pause)
			f.wantState(shard, seckill.SaleOpen, pause)
			shard.Epoch = 5
			f.install(shard, 3, 1)
			f.wantState(shard, seckill.SalePaused, pause)
			older := shard
			older.Epoch = 2
			f.instructed(older, end)
			f.wantState(shard, seckill.SaleEnded, end)
			never := f.product()
			f.instructed(never, pause)
			f.settled(never, pause.ID)
			f.wantState(never, seckill.SaleOpen, none)
		}},
		{"an invalid instruction is refused and changes nothing", func(f *fixture) {
			shard := f.sale(10, 5)
			for _, in := range []seckill.Instruction{
				none, instruction(seckill.SaleOpen, "resume"), instruction(seckill.SaleEnded+1, "more"), instruction(seckill.SalePaused, ""),
				instruction(seckill.SalePaused, "two words"), instruction(seckill.SalePaused, strings.Repeat("x", ledger.MaxInstructionID+1)),
			} {
				if _, err := f.Ledger.Instruct(f.ctx(), shard, in); err == nil {
					f.Errorf("%+v is taken", in)
				}
			}
			f.wantState(shard, seckill.SaleOpen, none)
		}},
	}
}
