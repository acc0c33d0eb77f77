SELECT product, shard, epoch, stripe, seq, body FROM snapshot
