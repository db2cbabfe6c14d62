// The peer of `cargo xtask bench check`: registers judged by porcupine, generated as our own side generates them.
//
// `porcupine register OPERATIONS KEYS CLIENTS` judges one history; `porcupine agree FILE` judges the small ones that our
// side wrote, and counts those on which the two differ.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

const (
	read = iota
	write
	compareAndSet
)

type input struct {
	kind  uint8
	key   int64
	value int64 // what is written, or what is expected
	new   int64
}

// A register holds -1 before it is written.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int64][]porcupine.Operation{}
		for _, operation := range history {
			key := operation.Input.(input).key
			byKey[key] = append(byKey[key], operation)
		}
		parts := make([][]porcupine.Operation, 0, len(byKey))
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() interface{} { return int64(-1) },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		held, asked := state.(int64), in.(input)
		switch asked.kind {
		case read:
			return out.(int64) == held, held
		case write:
			return true, asked.value
		default:
			return asked.value == held, asked.new
		}
	},
}

type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	mixed := r.state
	mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9
	mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB
	return mixed ^ (mixed >> 31)
}

func (r *random) below(limit uint64) uint64 { return r.next() % limit }

func nextClient(r *random, free []uint64, now uint64) (uint64, uint64, uint64) {
	count := uint64(len(free))
	for {
		client := r.below(count)
		if free[client] < now {
			back := r.below(4 * count)
			begin := uint64(0)
			if back < now {
				begin = now - back
			}
			if free[client]+1 > begin {
				begin = free[client] + 1
			}
			end := now + r.below(4*count)
			free[client] = end
			return client, begin, end
		}
		earliest := free[0]
		for _, at := range free {
			earliest = min(earliest, at)
		}
		if earliest >= now {
			for at := range free {
				free[at] = min(free[at], now-1)
			}
		}
	}
}

func generate(operations, keys, clients uint64) []porcupine.Operation {
	r := &random{1}
	free := make([]uint64, clients)
	held := make([]int64, keys)
	for key := range held {
		held[key] = -1
	}
	history := make([]porcupine.Operation, 0, operations)
	for at := uint64(0); at < operations; at++ {
		client, begin, end := nextClient(r, free, at*4+100)
		key := r.below(keys)
		new := int64(at) + 1
		asked, found := input{key: int64(key)}, int64(0)
		switch kind := r.below(10); {
		case kind < 5:
			asked.kind, found = read, held[key]
		case kind < 9:
			asked.kind, asked.value = write, new
			held[key] = new
		default:
			asked.kind, asked.value, asked.new = compareAndSet, held[key], new
			held[key] = new
		}
		history = append(history, porcupine.Operation{
			ClientId: int(client), Input: asked, Call: int64(begin), Output: found, Return: int64(end),
		})
	}
	return history
}

func agree(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var history []porcupine.Operation
	passed, failed, differ := 0, 0, 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "verdict" {
			verdict := "fail"
			if porcupine.CheckOperations(model, history) {
				verdict = "pass"
				passed++
			} else {
				failed++
			}
			if verdict != words[1] {
				differ++
			}
			history = nil
			continue
		}
		number := func(at int) int64 {
			value, parseError := strconv.ParseInt(words[at], 10, 64)
			if parseError != nil {
				panic(parseError)
			}
			return value
		}
		asked, found := input{key: number(4), value: number(5), new: number(6)}, int64(0)
		switch words[3] {
		case "read":
			asked.kind, found = read, number(5)
		case "write":
			asked.kind = write
		default:
			asked.kind = compareAndSet
		}
		history = append(history, porcupine.Operation{
			ClientId: int(number(0)), Input: asked, Call: number(1), Output: found, Return: number(2),
		})
	}
	fmt.Println(passed, failed, differ)
	return lines.Err()
}

func main() {
	number := func(at int) uint64 {
		value, err := strconv.ParseUint(os.Args[at], 10, 64)
		if err != nil {
			panic(err)
		}
		return value
	}
	if os.Args[1] == "agree" {
		if err := agree(os.Args[2]); err != nil {
			panic(err)
		}
		return
	}
	if porcupine.CheckOperations(model, generate(number(2), number(3), number(4))) {
		fmt.Println("pass")
	} else {
		fmt.Println("fail")
	}
}
