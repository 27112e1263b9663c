# peer_sidekiq.rb: the Sidekiq worker, which Sidekiq's program loads; by itself it fills the queue.
require "sidekiq"
require "sidekiq/api"

KIND = ENV.fetch("PEERS_KIND")
COUNT = ENV.fetch("PEERS_COUNT").to_i
BATCH = 1000

redis = { url: "redis://127.0.0.1:#{ENV.fetch("PEERS_PLACE")}/0" }
Sidekiq.configure_client { |config| config.redis = redis }
Sidekiq.configure_server do |config|
  config.redis = redis
  config.death_handlers << ->(_job, _error) { Job.settled }
end
Sidekiq.logger.level = Logger::FATAL

class Job
  include Sidekiq::Worker
  sidekiq_options retry: 0

  @lock = Mutex.new
  @calls = 0
  @ended = 0

  # Counts a call, or a job that came to its end, and writes the lines that compare.py waits for.
  def self.called
    @lock.synchronize { say "start" if (@calls += 1) == 1 }
    raise "deadlock detected" unless KIND == "succeed"
  end

  def self.settled
    @lock.synchronize do
      say "end #{@calls} #{KIND == "succeed" ? 0 : @ended}" if (@ended += 1) == COUNT
    end
  end

  def self.say(line)
    $stdout.puts line
    $stdout.flush
  end

  # Three retries in process: Sidekiq has none, so it's Ruby's own.
  def perform(_body)
    tries ||= 0
    Job.called
    Job.settled
  rescue RuntimeError
    retry if (tries += 1) <= 3
    raise
  end
end

if $PROGRAM_NAME == __FILE__
  COUNT.times.each_slice(BATCH) do |numbers|
    Sidekiq::Client.push_bulk("class" => Job, "args" => numbers.map { |number| [{ "number" => number }] })
  end
end
