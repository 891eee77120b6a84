// Lucene's BM25 for benchmarks/lucene.py: reads documents and queries, then searches as often as it is asked.
//
//   java -cp JAR:FOLDER LuceneSearch INDEX TEXTS QUERIES THREADS
//
// TEXTS and QUERIES hold one text a line. Says "ready"; then, for each line "DEPTH" on standard input, answers
// with the seconds that all queries took, wall-clock and of the processor.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.MMapDirectory;

public class LuceneSearch {
    public static void main(String[] given) throws Exception {
        EnglishAnalyzer analyzer = new EnglishAnalyzer();
        MMapDirectory folder = new MMapDirectory(Path.of(given[0]));
        IndexWriterConfig settings = new IndexWriterConfig(analyzer);
        settings.setRAMBufferSizeMB(500);
        long began = System.nanoTime();
        try (IndexWriter writer = new IndexWriter(folder, settings);
                BufferedReader lines = Files.newBufferedReader(Path.of(given[1]))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Document document = new Document();
                document.add(new TextField("text", line, Field.Store.NO));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
        double built = (System.nanoTime() - began) / 1e9;
        IndexSearcher searcher = new IndexSearcher(DirectoryReader.open(folder));
        searcher.setSimilarity(new BM25Similarity(0.9f, 0.4f));
        searcher.setQueryCache(null);
        List<Query> queries = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(given[2]))) {
            queries.add(parsed(analyzer, line));
        }
        int threads = Integer.parseInt(given[3]);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        System.out.println("ready " + built + " " + searcher.getIndexReader().numDocs());
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            int depth = Integer.parseInt(line.strip());
            com.sun.management.OperatingSystemMXBean system =
                    (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            long processor = system.getProcessCpuTime();
            long start = System.nanoTime();
            List<Future<Integer>> waiting = new ArrayList<>();
            for (Query query : queries) {
                Callable<Integer> one = () -> searcher.search(query, depth).scoreDocs.length;
                waiting.add(pool.submit(one));
            }
            long found = 0;
            for (Future<Integer> each : waiting) {
                found += each.get();
            }
            double wall = (System.nanoTime() - start) / 1e9;
            System.out.println(wall + " " + (system.getProcessCpuTime() - processor) / 1e9 + " " + found);
        }
        pool.shutdown();
    }

    static Query parsed(EnglishAnalyzer analyzer, String text) throws Exception {
        BooleanQuery.Builder query = new BooleanQuery.Builder();
        try (TokenStream tokens = analyzer.tokenStream("text", text)) {
            CharTermAttribute term = tokens.addAttribute(CharTermAttribute.class);
            tokens.reset();
            while (tokens.incrementToken()) {
                query.add(new TermQuery(new Term("text", term.toString())), BooleanClause.Occur.SHOULD);
            }
            tokens.end();
        }
        return query.build();
    }
}
